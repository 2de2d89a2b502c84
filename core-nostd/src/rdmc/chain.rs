//! Each member passes each block to the next member as soon as it has the block (RDMC 4.3, "Chain
//! Send").
//!
//! Requirement: RDM-2.

use super::shape::{Hop, Shape};
use crate::ids::{Block, Rank, Step};

/// The last block leaves the root after all others, and then crosses the whole chain.
pub(super) fn steps(shape: Shape) -> u64 {
    match shape.members.get().checked_sub(2) {
        Some(relays) => u64::from(relays).saturating_add(u64::from(shape.blocks.get())),
        None => 0,
    }
}

pub(super) fn sent(shape: Shape, rank: Rank, step: Step) -> Option<Hop> {
    let next = rank.0.checked_add(1).filter(|next| *next < shape.members.get())?;
    let block = block_from(shape, rank, step)?;
    Some(Hop { peer: Rank(next), block })
}

pub(super) fn received(shape: Shape, rank: Rank, step: Step) -> Option<Hop> {
    let before = Rank(rank.0.checked_sub(1)?);
    let block = block_from(shape, before, step)?;
    Some(Hop { peer: before, block })
}

/// Returns the block that a member with a successor passes on in a step.
fn block_from(shape: Shape, rank: Rank, step: Step) -> Option<Block> {
    let block = step.0.checked_sub(u64::from(rank.0))?;
    let block = u32::try_from(block).ok()?;
    (block < shape.blocks.get()).then_some(Block(block))
}
