//! The input and output types of schedules.
//!
//! Requirements: RDM-1, RDM-2.

use core::num::{NonZeroU16, NonZeroU32};

use crate::ids::{Block, Rank};

/// The number of members and of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    /// Number of members, including the root.
    pub members: NonZeroU16,
    /// Number of blocks in the message.
    pub blocks: NonZeroU32,
}

impl Shape {
    /// Creates a shape, or returns `None` if there are no members or no blocks.
    #[must_use]
    pub const fn new(members: u16, blocks: u32) -> Option<Self> {
        match (NonZeroU16::new(members), NonZeroU32::new(blocks)) {
            (Some(members), Some(blocks)) => Some(Self { members, blocks }),
            _ => None,
        }
    }

    /// Returns the last block.
    pub(super) const fn last_block(self) -> u32 {
        self.blocks.get().saturating_sub(1)
    }

    /// Returns the number of steps that a message takes through a pipeline in which the first block
    /// takes `first_block` steps.
    pub(super) fn steps_after_first(self, first_block: u32) -> u64 {
        u64::from(first_block).saturating_add(u64::from(self.last_block()))
    }
}

/// The transfer of a block between two members, as seen by one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Hop {
    /// Member at the other end.
    pub peer: Rank,
    /// Block that is sent.
    pub block: Block,
}
