//! Seeded random numbers, for scenario plans and for generated test histories.
//!
//! Each stream has a label, so that drawing more often in one place does not change the numbers
//! drawn in another. The numbers for a given seed and label never change: a seed in a report must
//! give the same plan later.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// A stream of numbers determined by a seed and a label.
#[derive(Clone, Debug)]
pub struct Random {
    generator: Xoshiro256PlusPlus,
}

impl Random {
    /// Creates the stream for this seed and label.
    #[must_use]
    pub fn stream(seed: u64, label: &str) -> Self {
        // FNV-1a mixes the label in; the generator's own seeding (SplitMix64) spreads the result.
        let mixed = label.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |digest, byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(mixed) }
    }

    /// Returns a number from `0` to `bound - 1`, or `0` if the bound is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of a 128-bit product has a bias of 2^-64 times the bound, which no run can
        // notice.
        ((u128::from(self.generator.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns an index below a length.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Returns a number from `low` to `high` inclusive, or `low` if they are swapped.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Returns true `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns one of several items, or `None` if there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.index(from.len()))
    }

    /// Shuffles a list.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.index(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_and_label_determine_the_stream() {
        let mut random = Random::stream(1, "wire");
        assert_eq!([0; 4].map(|_: u64| random.below(1000)), [776, 375, 471, 409]);
        assert_ne!(
            Random::stream(1, "plan").below(1 << 40),
            Random::stream(1, "wire").below(1 << 40)
        );
        assert_ne!(
            Random::stream(2, "wire").below(1 << 40),
            Random::stream(1, "wire").below(1 << 40)
        );
    }

    #[test]
    fn draws_stay_in_range_and_shuffles_keep_items() {
        let mut random = Random::stream(3, "range");
        assert_eq!((random.below(0), random.between(9, 5)), (0, 9));
        assert!((0..1000).all(|_| random.below(7) < 7 && (5..=9).contains(&random.between(5, 9))));
        assert!(!random.chance(0) && random.chance(100));
        assert_eq!(random.pick::<u8>(&[]), None);
        let mut list: Vec<u32> = (0..50).collect();
        random.shuffle(&mut list);
        assert_ne!(list, (0..50).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..50).collect::<Vec<_>>());
    }
}
