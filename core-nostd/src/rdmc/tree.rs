//! A binomial tree: in each round, every member that has the whole message sends it to one that
//! does not have it (RDMC 4.3, "Binomial Tree").
//!
//! Requirement: RDM-2.

use super::shape::{Hop, Shape};
use crate::ids::{Block, Rank, Step};

/// In each round the number of members that have the message doubles. Each round is as long as a
/// whole message.
pub(super) fn steps(shape: Shape) -> u64 {
    let rounds =
        shape.members.get().checked_next_power_of_two().map_or(u16::BITS, u16::trailing_zeros);
    u64::from(rounds).saturating_mul(u64::from(shape.blocks.get()))
}

pub(super) fn sent(shape: Shape, rank: Rank, step: Step) -> Option<Hop> {
    let (have, block) = round(shape, step)?;
    let to = rank.0.checked_add(have).filter(|to| rank.0 < have && *to < shape.members.get())?;
    Some(Hop { peer: Rank(to), block })
}

pub(super) fn received(shape: Shape, rank: Rank, step: Step) -> Option<Hop> {
    let (have, block) = round(shape, step)?;
    let from = rank.0.checked_sub(have).filter(|from| *from < have)?;
    Some(Hop { peer: Rank(from), block })
}

/// Returns the number of members that have the message in the step's round, and the block that is
/// sent.
#[allow(clippy::integer_division)] // The remainder is the other half of the answer.
fn round(shape: Shape, step: Step) -> Option<(u16, Block)> {
    let blocks = core::num::NonZeroU64::from(shape.blocks);
    let round = u32::try_from(step.0 / blocks).ok()?;
    let have = 1_u16.checked_shl(round)?;
    let block = u32::try_from(step.0 % blocks).ok()?;
    (have < shape.members.get()).then_some((have, Block(block)))
}
