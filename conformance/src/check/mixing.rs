//! A hash function for the judge's own tables, several times faster than the standard one for short
//! keys.
//!
//! Histories may come from untrusted sources, so each judge has its own seed: no author can write a
//! history whose names all collide. No verdict depends on the order of a table.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A table with this hash.
pub(super) type MixedTable<Key, Value> = HashMap<Key, Value, Mix>;

/// An odd number without structure: the digits of the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Creates hashers with the same seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mix {
    seed: u64,
}

impl Default for Mix {
    fn default() -> Self {
        Self { seed: RandomState::new().hash_one(STEP) }
    }
}

impl Mix {
    /// Returns the hash of a text, never 0.
    pub(super) fn text(self, text: &str) -> u64 {
        self.hash_one(text).max(1)
    }
}

impl BuildHasher for Mix {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer { state: self.seed, seed: self.seed }
    }
}

/// A hash in progress.
#[derive(Debug)]
pub(super) struct Mixer {
    state: u64,
    seed: u64,
}

impl Mixer {
    fn mix(&mut self, word: u64) {
        self.state = folded(self.state ^ word, STEP ^ self.seed.rotate_left(32));
    }
}

/// Combines both halves of the product with XOR, so that every bit of the result depends on all
/// bits of both factors.
fn folded(left: u64, right: u64) -> u64 {
    let product = u128::from(left).wrapping_mul(u128::from(right | 1));
    (product as u64) ^ ((product >> 64) as u64)
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // The length distinguishes a text from the same text followed by zeros.
        self.mix(u64::from_le_bytes(last));
        self.mix(bytes.len() as u64);
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }

    fn finish(&self) -> u64 {
        folded(self.state, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn different_keys_rarely_share_hash_bits() {
        let mix = Mix::default();
        let hashes: HashSet<u64> = (0..20_000_u64).map(|key| mix.hash_one((7_u32, key))).collect();
        assert_eq!(hashes.len(), 20_000);
        let low: HashSet<u64> = hashes.iter().map(|hash| hash & 0xff).collect();
        let high: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        assert_eq!((low.len(), high.len()), (256, 128));
    }

    #[test]
    fn texts_of_different_length_hash_differently() {
        let mix = Mix::default();
        let texts = ["", "\0", "\0\0", "a", "a\0", "abcdefgh", "abcdefgh\0"];
        let hashes: HashSet<u64> = texts.iter().map(|text| mix.text(text)).collect();
        assert_eq!(hashes.len(), texts.len());
    }
}
