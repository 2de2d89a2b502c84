//! Random numbers determined by the seed of a network.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// A stream of numbers determined by its seed.
#[derive(Clone, Debug)]
pub(super) struct DeviceRandom(Xoshiro256PlusPlus);

impl DeviceRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a number from zero to `bound - 1`, or zero if the bound is zero.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.0.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// Returns `true` in `per_million` out of a million cases. Draws nothing if `per_million` is
    /// zero.
    pub(super) fn chance(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.below(1_000_000) < u64::from(per_million)
    }

    /// Returns one of several values, or the first if there are no others.
    pub(super) fn pick<T: Copy>(&mut self, first: T, others: &[T]) -> T {
        let count = u64::try_from(others.len()).unwrap_or(0) + 1;
        let index = usize::try_from(self.below(count)).unwrap_or(0);
        index.checked_sub(1).and_then(|index| others.get(index)).copied().unwrap_or(first)
    }
}
