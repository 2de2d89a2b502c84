//! Bytes that are aligned to a block in memory, so that a layer can write them to the disk without
//! copying.

use std::ops::{Deref, DerefMut};

use crate::format::BLOCK_BYTES;

/// A vector of bytes that begins at a multiple of [`BLOCK_BYTES`] in memory, even after it has
/// grown.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The bytes, preceded by unused padding.
    bytes: Vec<u8>,
    begin: usize,
}

impl Blocks {
    /// Creates a vector of `length` zeros.
    pub(crate) fn zeroed(length: usize) -> Self {
        let mut blocks = Self::default();
        blocks.resize(length, 0);
        blocks
    }

    pub(crate) fn extend_from_slice(&mut self, more: &[u8]) {
        self.make_room(more.len());
        self.bytes.extend_from_slice(more);
    }

    pub(crate) fn resize(&mut self, length: usize, value: u8) {
        self.make_room(length.saturating_sub(self.len()));
        self.bytes.resize(self.begin + length, value);
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(self.begin + length);
    }

    /// Reallocates with room for `more` bytes, keeping the alignment. An ordinary vector that grows
    /// may begin at any address.
    fn make_room(&mut self, more: usize) {
        if self.bytes.capacity() - self.bytes.len() >= more {
            return;
        }
        let length = (self.len() + more).next_power_of_two();
        let mut moved = Vec::<u8>::with_capacity(BLOCK_BYTES + length);
        let begin = moved.as_ptr().align_offset(BLOCK_BYTES);
        moved.resize(begin, 0);
        moved.extend_from_slice(self);
        *self = Self { bytes: moved, begin };
    }
}

impl Clone for Blocks {
    fn clone(&self) -> Self {
        let mut clone = Self::default();
        clone.extend_from_slice(self);
        clone
    }
}

impl Deref for Blocks {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }
}

impl DerefMut for Blocks {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.begin..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_block_buffer_stays_aligned_and_intact() {
        let (mut blocks, mut expected) = (Blocks::zeroed(3), vec![0; 3]);
        for round in 0..200_usize {
            let more = vec![round as u8; round * 7 % 300];
            blocks.extend_from_slice(&more);
            expected.extend_from_slice(&more);
            if round % 50 == 49 {
                blocks.truncate(round);
                expected.truncate(round);
                blocks.resize(3 * round, 9);
                expected.resize(3 * round, 9);
            }
            assert_eq!(blocks.as_ptr().align_offset(BLOCK_BYTES), 0);
            assert_eq!(*blocks, *expected);
            assert_eq!(blocks.clone().as_ptr().align_offset(BLOCK_BYTES), 0);
        }
    }
}
