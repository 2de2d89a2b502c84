//! The replicated state, and the messages that change it. Replace it with your own state, which
//! needs equivalents of [`Orders::take`], [`Orders::save`] and [`Orders::restore`].

use crate::group::{MESSAGE_MAX, WhichPartition};

/// Number of the latest digests that are kept. They make the state larger than a port's message.
pub const KEPT: usize = 64;

/// Size in bytes of a saved state.
pub const SNAPSHOT_BYTES: usize = 24 + 8 * KEPT;

/// The state of both partitions, built up message by message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    of: [u64; 2],
    digest: u64,
    kept: [u64; KEPT],
}

impl Orders {
    /// State before the first message.
    pub const NONE: Self = Self { of: [0; 2], digest: 0xcbf2_9ce4_8422_2325, kept: [0; KEPT] };

    /// Returns the number of messages taken from both partitions.
    #[must_use]
    pub const fn count(&self) -> u64 {
        let [a, b] = self.of;
        a.saturating_add(b)
    }

    /// Returns the number of messages taken from one partition.
    #[must_use]
    pub fn count_of(&self, channel: WhichPartition) -> u64 {
        self.of.get(channel.index()).copied().unwrap_or(0)
    }

    /// Returns a digest of all messages and their order.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the digest after the first `count` messages, if it is among the digests that are
    /// kept.
    #[must_use]
    pub fn digest_after(&self, count: u64) -> Option<u64> {
        let is_kept = count > 0 && count <= self.count();
        let is_kept = is_kept && self.count().wrapping_sub(count) < KEPT as u64;
        self.kept.get(place_of(count)).copied().filter(|_| is_kept)
    }

    /// Returns the length of a message. Lengths differ, and many are larger than a port's message.
    #[must_use]
    pub const fn length_of(channel: WhichPartition, number: u64) -> usize {
        let spread = number.wrapping_mul(37).wrapping_add(channel.node().get() as u64 * 11);
        8 + (spread % (MESSAGE_MAX as u64 - 7)) as usize
    }

    /// Builds a message in its slot: its number, then bytes derived from it.
    pub fn build(channel: WhichPartition, number: u64, payload: &mut [u8]) {
        for (at, byte) in payload.iter_mut().enumerate() {
            *byte = byte_of(channel, number, at);
        }
    }

    /// Takes a delivered message. Returns false if it is not, byte for byte, the next message from
    /// its sender.
    #[must_use]
    pub fn take(&mut self, channel: WhichPartition, payload: &[u8]) -> bool {
        let Some(number) = self.of.get_mut(channel.index()) else { return false };
        let is_next = payload.len() == Self::length_of(channel, *number)
            && payload.iter().enumerate().all(|(at, byte)| *byte == byte_of(channel, *number, at));
        if !is_next {
            return false;
        }
        *number = number.saturating_add(1);
        let mixed = self.digest ^ u64::from(channel.node().get()) ^ *number << 8;
        self.digest = mixed.wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
        let place = place_of(self.count());
        if let Some(kept) = self.kept.get_mut(place) {
            *kept = self.digest;
        }
        true
    }

    /// Returns the state as bytes, for a partition that begins with it.
    #[must_use]
    pub fn save(&self) -> [u8; SNAPSHOT_BYTES] {
        let mut bytes = [0; SNAPSHOT_BYTES];
        let words = self.of.iter().chain([&self.digest]).chain(&self.kept);
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            for (to, from) in to.iter_mut().zip(word.to_le_bytes()) {
                *to = from;
            }
        }
        bytes
    }

    /// Restores a saved state.
    #[must_use]
    pub fn restore(bytes: &[u8; SNAPSHOT_BYTES]) -> Self {
        let mut words = bytes
            .chunks_exact(8)
            .map(|word| word.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word)));
        let mut next = || words.next().unwrap_or(0);
        let of = [next(), next()];
        let digest = next();
        let mut kept = [0; KEPT];
        for word in &mut kept {
            *word = next();
        }
        Self { of, digest, kept }
    }
}

fn place_of(count: u64) -> usize {
    (count % KEPT as u64) as usize
}

fn byte_of(channel: WhichPartition, number: u64, at: usize) -> u8 {
    let number = number ^ u64::from(channel.node().get()) << 56;
    match number.to_le_bytes().get(at) {
        Some(byte) => *byte,
        None => (number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left((at % 64) as u32) as u8)
            .wrapping_add(at as u8),
    }
}
