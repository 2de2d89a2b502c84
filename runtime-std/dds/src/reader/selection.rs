//! The samples to which a call applies.

use super::info::{InstanceStates, SampleStates, ViewStates};
use crate::cdr::InstanceHandle;

/// A selection of samples by their states, for DDS's read and take. The default selects all
/// samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Maximum number of samples to return.
    pub max_samples: usize,
    /// The samples must be in one of these states.
    pub samples: SampleStates,
    /// The instances of the samples must be in one of these view states.
    pub views: ViewStates,
    /// The instances of the samples must be in one of these instance states.
    pub instances: InstanceStates,
    /// If given, only samples of this instance are selected.
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
    /// Selects the unread samples.
    #[must_use]
    pub fn unread() -> Self {
        Self { samples: SampleStates::NOT_READ, ..Self::default() }
    }

    /// Limits the number of samples.
    #[must_use]
    pub fn at_most(self, max_samples: usize) -> Self {
        Self { max_samples, ..self }
    }

    /// Restricts the selection to one instance.
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
