//! The binomial pipeline between the corners of a hypercube (RDMC 4.4, the rule of Ganesan and
//! Seshadri).
//!
//! In step `j` every corner exchanges blocks with its neighbour along direction `j mod l`, where
//! `l` is the number of dimensions. Corner 0, the root's, sends block `j`. Every other corner sends
//! the highest block that it has, which is block `j - l + r`: `r` is the number of low zero bits of
//! the corner's number, after a rotation that makes the bit of the step's direction the lowest.
//! Past the last block, the last block is sent.
//!
//! Requirements: RDM-2, RDM-3.

use super::shape::Shape;
use crate::ids::{Block, Step};

/// A corner's number, which has as many bits as there are dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Corner(pub(super) u16);

impl Corner {
    /// Corner of the root.
    pub(super) const ROOT: Self = Self(0);
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Hypercube {
    /// Number of dimensions; at most 15, because ranks have 16 bits.
    dimensions: u32,
    shape: Shape,
}

impl Hypercube {
    /// Creates the largest hypercube with a member for each corner.
    pub(super) const fn new(shape: Shape) -> Self {
        Self { dimensions: shape.members.ilog2(), shape }
    }

    pub(super) const fn dimensions(self) -> u32 {
        self.dimensions
    }

    /// Returns the number of corners.
    pub(super) fn corners(self) -> u16 {
        1_u16.checked_shl(self.dimensions).unwrap_or(u16::MAX)
    }

    /// Returns the number of steps after which every corner has everything.
    pub(super) fn steps(self) -> u64 {
        if self.dimensions == 0 { 0 } else { self.shape.steps_after_first(self.dimensions) }
    }

    /// Returns the dimension along which blocks travel in a step.
    pub(super) fn direction(self, step: Step) -> u32 {
        let direction = step.0.checked_rem(u64::from(self.dimensions)).unwrap_or(0);
        u32::try_from(direction).unwrap_or(0)
    }

    /// Returns a corner's neighbour in a step.
    pub(super) fn across(self, corner: Corner, step: Step) -> Corner {
        Corner(corner.0 ^ 1_u16.checked_shl(self.direction(step)).unwrap_or(0))
    }

    /// Returns whether a corner's number has a one in the direction of a step.
    pub(super) fn is_far(self, corner: Corner, step: Step) -> bool {
        let bit = 1_u16.checked_shl(self.direction(step)).unwrap_or(0);
        corner.0 & bit != 0
    }

    /// Returns the block that a corner sends to its neighbour in a step: the closed form of the
    /// paper's 4.4.
    pub(super) fn sent(self, corner: Corner, step: Step) -> Option<Block> {
        let last = u64::from(self.shape.last_block());
        if corner == Corner::ROOT {
            return block(step.0.min(last));
        }
        let seen = self.seen_from(corner, self.direction(step));
        if seen == 1 {
            // The neighbour is the root's corner, which has everything.
            return None;
        }
        let age = u64::from(seen.trailing_zeros());
        let number = step.0.saturating_add(age).checked_sub(u64::from(self.dimensions))?;
        block(number.min(last))
    }

    /// Returns the block that a corner receives in a step.
    pub(super) fn received(self, corner: Corner, step: Step) -> Option<Block> {
        self.sent(self.across(corner, step), step)
    }

    /// Returns a corner's number, rotated right so that the bit of the direction is the lowest.
    fn seen_from(self, corner: Corner, direction: u32) -> u16 {
        let low = corner.0.checked_shr(direction).unwrap_or(0);
        let rest = self.dimensions.saturating_sub(direction);
        let high = u32::from(corner.0).checked_shl(rest).unwrap_or(0);
        let mask = self.corners().saturating_sub(1);
        (low | u16::try_from(high & u32::from(mask)).unwrap_or(0)) & mask
    }
}

fn block(number: u64) -> Option<Block> {
    u32::try_from(number).ok().map(Block)
}
