//! Where the choices come from.

use tramontane_conformance::random::Random;

/// A source of choices.
pub trait Chance {
    /// A number from `0` to `bound - 1`; `0` if the bound is zero.
    fn below(&mut self, bound: u64) -> u64;

    /// An index below a length.
    fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True so many times in a hundred.
    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number from `low` to `high`, both included.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// One of several; nothing if there are none.
    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.index(from.len())).cloned()
    }
}

impl Chance for Random {
    fn below(&mut self, bound: u64) -> u64 {
        Random::below(self, bound)
    }
}
