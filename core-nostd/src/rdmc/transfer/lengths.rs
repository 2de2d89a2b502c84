//! The length of each block of a message: the group's block size, except for the last block.
//!
//! In a pipeline, the peer from which a member receives its first block would be a different one in
//! a message of one block than in larger messages, but the member must know that peer before it
//! knows the number of blocks. A message of one block is therefore sent as two blocks, the second
//! of which is empty; the first may then be short.
//!
//! Requirement: RDM-4.

use crate::ids::{Block, index_from_u32};
use crate::rdmc::Algorithm;

/// Returns the minimum number of blocks in a message for which a member's first block always comes
/// from the same peer.
pub(super) const fn blocks_min(algorithm: Algorithm) -> u32 {
    match algorithm {
        Algorithm::Sequential | Algorithm::Interleaved | Algorithm::Chain | Algorithm::Tree => 1,
        Algorithm::Pipeline | Algorithm::Hybrid { .. } => 2,
    }
}

/// The lengths of a message's blocks, as far as they are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    block_bytes: usize,
    last: Block,
    /// Whether the message may be a single block that is sent as two.
    may_be_short: bool,
    first_bytes: Option<usize>,
    last_bytes: Option<usize>,
}

impl Lengths {
    /// Creates the lengths of a message of which only the number of blocks is known.
    pub(super) const fn unknown(blocks: u32, block_bytes: usize, blocks_min: u32) -> Self {
        let last = Block(blocks.saturating_sub(1));
        let may_be_short = blocks_min == 2 && blocks == 2;
        Self { block_bytes, last, may_be_short, first_bytes: None, last_bytes: None }
    }

    /// Returns the lengths of a message of `bytes` bytes, and its number of blocks, saturated at
    /// the largest countable number.
    pub(super) fn of(bytes: usize, block_bytes: usize, blocks_min: u32) -> (Self, u32) {
        let whole = bytes.checked_div(block_bytes).unwrap_or(usize::MAX);
        let rest = bytes.checked_rem(block_bytes).unwrap_or(0);
        let blocks = whole.saturating_add(usize::from(rest > 0));
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX).max(blocks_min);
        let mut lengths = Self::unknown(blocks, block_bytes, blocks_min);
        let before = index_from_u32(lengths.last.0).saturating_mul(block_bytes);
        lengths.first_bytes = Some(bytes.min(block_bytes));
        lengths.last_bytes = Some(bytes.saturating_sub(before));
        (lengths, blocks)
    }

    /// Records a block's length. Returns false if no correct member sends a block of this length
    /// here.
    pub(super) fn note(&mut self, block: Block, length: usize) -> bool {
        if block == self.last {
            self.last_bytes = Some(length);
        } else if block == Block::ZERO {
            self.first_bytes = Some(length);
        }
        // The last block is empty only in an empty message, or in a message of one block that is
        // sent as two.
        let may_be_empty = self.last == Block::ZERO || self.may_be_short;
        let fits = if block == self.last {
            length <= self.block_bytes && (length > 0 || may_be_empty)
        } else if block == Block::ZERO && self.may_be_short {
            length <= self.block_bytes
        } else {
            length == self.block_bytes
        };
        fits && !self.has_a_hole()
    }

    /// Returns a block's length, which is known once the block has arrived.
    pub(super) fn of_block(&self, block: Block) -> usize {
        if block == self.last {
            self.last_bytes.unwrap_or(0)
        } else if block == Block::ZERO {
            self.first_bytes.unwrap_or(self.block_bytes)
        } else {
            self.block_bytes
        }
    }

    /// Returns the size in bytes of the whole message once all blocks have arrived.
    pub(super) fn total(&self) -> usize {
        if self.last == Block::ZERO {
            return self.of_block(self.last);
        }
        let between =
            index_from_u32(self.last.0).saturating_sub(1).saturating_mul(self.block_bytes);
        self.of_block(Block::ZERO).saturating_add(between).saturating_add(self.of_block(self.last))
    }

    /// Returns whether a short block is followed by more bytes.
    fn has_a_hole(&self) -> bool {
        let is_short = self.first_bytes.is_some_and(|bytes| bytes < self.block_bytes);
        self.may_be_short && is_short && self.last_bytes.is_some_and(|bytes| bytes > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_derives_same_block_lengths_as_root() {
        for blocks_min in [1, 2] {
            for bytes in 0..50 {
                let (root, blocks) = Lengths::of(bytes, 10, blocks_min);
                let mut receiver = Lengths::unknown(blocks, 10, blocks_min);
                for block in (0..blocks).rev().map(Block) {
                    assert!(receiver.note(block, root.of_block(block)), "{bytes} {block}");
                    assert_eq!(receiver.of_block(block), root.of_block(block));
                }
                assert_eq!((receiver.total(), root.total()), (bytes, bytes));
            }
        }
    }

    #[test]
    fn invalid_block_lengths_are_refused() {
        let noted = |blocks, blocks_min, lengths: &[(u32, usize)]| {
            let mut known = Lengths::unknown(blocks, 10, blocks_min);
            lengths.iter().all(|(block, length)| known.note(Block(*block), *length))
        };
        assert!(!noted(1, 1, &[(0, 11)]));
        assert!(!noted(2, 1, &[(0, 9)]), "only the last is short");
        assert!(!noted(2, 1, &[(1, 0)]), "one block would do");
        assert!(!noted(3, 2, &[(0, 9)]));
        assert!(!noted(3, 2, &[(2, 0)]));
        assert!(!noted(2, 2, &[(0, 9), (1, 1)]), "a hole");
        assert!(!noted(2, 2, &[(1, 1), (0, 9)]), "a hole");
        assert!(noted(2, 2, &[(1, 0), (0, 9)]));
        assert!(noted(2, 2, &[(0, 10), (1, 1)]));
    }
}
