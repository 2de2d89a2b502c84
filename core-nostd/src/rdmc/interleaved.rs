//! The root sends each block to each member in turn before it sends the next block.
//!
//! The root makes as many sends as in [`sequential`](super::sequential). Over shared memory, where
//! each receiver copies for itself, all receivers copy a block at the same time, while it is still
//! in a shared cache.
//!
//! Requirement: RDM-2.

use super::shape::{Hop, Shape};
use crate::ids::{Block, Rank, Step};

/// Each block takes one step per member except the root.
pub(super) fn steps(shape: Shape) -> u64 {
    receivers(shape).saturating_mul(u64::from(shape.blocks.get()))
}

pub(super) fn sent(shape: Shape, rank: Rank, step: Step) -> Option<Hop> {
    let (to, block) = turn(shape, step)?;
    (rank == Rank::ZERO).then_some(Hop { peer: to, block })
}

pub(super) fn received(shape: Shape, rank: Rank, step: Step) -> Option<Hop> {
    let (to, block) = turn(shape, step)?;
    (rank == to).then_some(Hop { peer: Rank::ZERO, block })
}

/// Returns the steps in which a member other than the root takes part, as a range: the first step,
/// and the step after the last.
pub(super) fn part(shape: Shape, rank: Rank) -> (u64, u64) {
    let first = u64::from(rank.0).saturating_sub(1);
    let last = first.saturating_add(receivers(shape).saturating_mul(u64::from(shape.last_block())));
    (first, last.saturating_add(1))
}

fn receivers(shape: Shape) -> u64 {
    u64::from(shape.members.get()).saturating_sub(1)
}

/// Returns the receiving member and the block of a step.
#[allow(clippy::integer_division)] // The remainder is the other half of the answer.
fn turn(shape: Shape, step: Step) -> Option<(Rank, Block)> {
    let receivers = core::num::NonZeroU64::new(receivers(shape))?;
    let receiver = u16::try_from(step.0 % receivers).ok()?.checked_add(1)?;
    let block = u32::try_from(step.0 / receivers).ok()?;
    (block < shape.blocks.get()).then_some((Rank(receiver), Block(block)))
}
