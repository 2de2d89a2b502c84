//! The set of blocks that have arrived: one bit each, in lent words.
//!
//! Requirement: RDM-5.

use crate::ids::{Block, index_from_u32};

/// Number of blocks per word.
const WORD_BITS: u32 = u64::BITS;

/// Returns the number of words to lend for messages of up to `blocks_max` blocks.
#[must_use]
pub const fn words_for(blocks_max: u32) -> usize {
    index_from_u32(blocks_max.div_ceil(WORD_BITS))
}

/// The set of blocks that have arrived.
#[derive(Debug)]
pub(super) struct Here<'m>(&'m mut [u64]);

impl<'m> Here<'m> {
    pub(super) const fn new(words: &'m mut [u64]) -> Self {
        Self(words)
    }

    /// Returns the maximum number of blocks in a message.
    pub(super) fn blocks_max(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX).saturating_mul(WORD_BITS)
    }

    pub(super) fn clear(&mut self, blocks: u32) {
        self.0.iter_mut().take(words_for(blocks)).for_each(|word| *word = 0);
    }

    pub(super) fn has(&self, block: Block) -> bool {
        let (index, bit) = place(block);
        self.0.get(index).is_some_and(|word| word & bit != 0)
    }

    /// Adds a block, and returns whether the block was new.
    pub(super) fn add(&mut self, block: Block) -> bool {
        let (index, bit) = place(block);
        let Some(word) = self.0.get_mut(index) else { return false };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// Returns the word of a block and its bit in that word.
fn place(block: Block) -> (usize, u64) {
    let index = index_from_u32(block.0 >> WORD_BITS.trailing_zeros());
    let bit = 1_u64.checked_shl(block.0 & WORD_BITS.saturating_sub(1)).unwrap_or(0);
    (index, bit)
}
