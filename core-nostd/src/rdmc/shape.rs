//! What every schedule is made for, and what it is made of.
//!
//! Requirements: RDM-1, RDM-2.

use core::num::{NonZeroU16, NonZeroU32};

use crate::ids::{Block, Rank};

/// How many members and blocks there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    /// Members, the root among them.
    pub members: NonZeroU16,
    /// Blocks of the message.
    pub blocks: NonZeroU32,
}

impl Shape {
    /// A shape; none without a member or a block.
    #[must_use]
    pub const fn new(members: u16, blocks: u32) -> Option<Self> {
        match (NonZeroU16::new(members), NonZeroU32::new(blocks)) {
            (Some(members), Some(blocks)) => Some(Self { members, blocks }),
            _ => None,
        }
    }

    /// The last block.
    pub(super) const fn last_block(self) -> u32 {
        self.blocks.get().saturating_sub(1)
    }

    /// Steps of a message through a pipeline in which the first block takes so many.
    pub(super) fn steps_after_first(self, first_block: u32) -> u64 {
        u64::from(first_block).saturating_add(u64::from(self.last_block()))
    }
}

/// A block's way between two members, as one of them sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Hop {
    /// The member at the other end.
    pub peer: Rank,
    /// Which block.
    pub block: Block,
}
