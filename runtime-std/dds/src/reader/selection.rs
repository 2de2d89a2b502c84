//! Which samples a call means.

use super::info::{InstanceStates, SampleStates, ViewStates};
use crate::cdr::InstanceHandle;

/// Samples by their states, as DDS's read and take have them. The default means all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// At most so many.
    pub max_samples: usize,
    /// Samples in one of these states.
    pub samples: SampleStates,
    /// Samples of instances in one of these states.
    pub views: ViewStates,
    /// Samples of instances in one of these states.
    pub instances: InstanceStates,
    /// Samples of this instance alone.
    pub instance: Option<InstanceHandle>,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            max_samples: usize::MAX,
            samples: SampleStates::all(),
            views: ViewStates::all(),
            instances: InstanceStates::all(),
            instance: None,
        }
    }
}

impl Selection {
    /// What was not read yet.
    #[must_use]
    pub fn unread() -> Self {
        Self { samples: SampleStates::NOT_READ, ..Self::default() }
    }

    /// At most so many.
    #[must_use]
    pub fn at_most(self, max_samples: usize) -> Self {
        Self { max_samples, ..self }
    }

    /// Of that instance alone.
    #[must_use]
    pub fn of_instance(self, handle: InstanceHandle) -> Self {
        Self { instance: Some(handle), ..self }
    }

    pub(super) fn means_instance(
        &self,
        handle: InstanceHandle,
        view: ViewStates,
        state: InstanceStates,
    ) -> bool {
        self.instance.is_none_or(|wanted| wanted == handle)
            && self.views.contains(view)
            && self.instances.contains(state)
    }
}
