//! The result of a run.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// The figures of one run, by name, and its batches.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    numbers: BTreeMap<&'static str, f64>,
    /// Batch sizes with their numbers of batches, by name.
    pub(super) batches: BTreeMap<&'static str, Vec<(u64, u64)>>,
}

impl Figures {
    /// Returns a figure or, if `up_to` is given, the percentage of the batches of that name with at
    /// most that many messages.
    pub(super) fn figure(&self, name: &str, up_to: Option<u64>) -> Option<f64> {
        let Some(up_to) = up_to else { return self.numbers.get(name).copied() };
        let batches = self.batches.get(name)?;
        let sum = |is_meant: &dyn Fn(u64) -> bool| -> u64 {
            batches.iter().filter(|(size, _)| is_meant(*size)).map(|(_, number)| number).sum()
        };
        Some(100.0 * sum(&|size| size <= up_to) as f64 / sum(&|_| true).max(1) as f64)
    }
}

impl<const N: usize> From<[(&'static str, f64); N]> for Figures {
    fn from(numbers: [(&'static str, f64); N]) -> Self {
        Self { numbers: numbers.into(), batches: BTreeMap::new() }
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
