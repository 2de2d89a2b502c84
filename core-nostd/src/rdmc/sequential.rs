//! The root sends the whole message to each member in turn (RDMC 4.3, "Sequential Send").
//!
//! Requirement: RDM-2.

use super::shape::{Hop, Shape};
use crate::ids::{Block, Rank, Step};

/// Each member except the root takes as many steps as there are blocks.
pub(super) fn steps(shape: Shape) -> u64 {
    let receivers = u64::from(shape.members.get()).saturating_sub(1);
    receivers.saturating_mul(u64::from(shape.blocks.get()))
}

pub(super) fn sent(shape: Shape, rank: Rank, step: Step) -> Option<Hop> {
    let (to, block) = turn(shape, step)?;
    (rank == Rank::ZERO).then_some(Hop { peer: to, block })
}

pub(super) fn received(shape: Shape, rank: Rank, step: Step) -> Option<Hop> {
    let (to, block) = turn(shape, step)?;
    (rank == to).then_some(Hop { peer: Rank::ZERO, block })
}

/// Returns the receiving member and the block of a step.
#[allow(clippy::integer_division)] // The remainder is the other half of the answer.
fn turn(shape: Shape, step: Step) -> Option<(Rank, Block)> {
    let blocks = core::num::NonZeroU64::from(shape.blocks);
    let receiver = u16::try_from(step.0 / blocks).ok()?.checked_add(1)?;
    let block = u32::try_from(step.0 % blocks).ok()?;
    (receiver < shape.members.get()).then_some((Rank(receiver), Block(block)))
}
