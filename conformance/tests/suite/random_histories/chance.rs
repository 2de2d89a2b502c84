//! The source of random choices.

use tramontane_conformance::random::Random;

/// A source of choices.
pub trait Chance {
    /// Returns a number from `0` to `bound - 1`, or `0` if the bound is zero.
    fn below(&mut self, bound: u64) -> u64;

    /// Returns an index below a length.
    fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Returns true `percent` times in a hundred.
    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns a number from `low` to `high` inclusive.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Returns one of several items, or `None` if there are none.
    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.index(from.len())).cloned()
    }
}

impl Chance for Random {
    fn below(&mut self, bound: u64) -> u64 {
        Random::below(self, bound)
    }
}
