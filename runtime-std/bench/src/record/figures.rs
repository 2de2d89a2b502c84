//! The result of a run.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use tramontane_fixtures::world::Histogram;

/// The figures of one run, by name, and its distributions.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    numbers: BTreeMap<&'static str, f64>,
    /// The distributions of batch sizes or whole milliseconds, by name.
    pub(super) distributions: BTreeMap<&'static str, Histogram>,
}

impl Figures {
    /// Returns a figure or, if `up_to` is given, the percentage of the distribution of that name
    /// that is at most this number.
    pub(super) fn figure(&self, name: &str, up_to: Option<u64>) -> Option<f64> {
        let Some(up_to) = up_to else { return self.numbers.get(name).copied() };
        Some(100.0 * self.distributions.get(name)?.share(|size| size <= up_to))
    }
}

impl<const N: usize> From<[(&'static str, f64); N]> for Figures {
    fn from(numbers: [(&'static str, f64); N]) -> Self {
        Self { numbers: numbers.into(), distributions: BTreeMap::new() }
    }
}

impl Deref for Figures {
    type Target = BTreeMap<&'static str, f64>;

    fn deref(&self) -> &Self::Target {
        &self.numbers
    }
}

impl DerefMut for Figures {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.numbers
    }
}
