//! The number of messages that each member of a logged subgroup reports as durable (DUR-1).
//!
//! # Invariants
//! - A count never decreases. A member whose count shrinks misbehaves, because it has reported
//!   messages that were not durable.
//! - The count of a lost member remains unchanged, because its disk still has the messages.
//!
//! Requirement: DUR-9.

use super::state::{MemberState, SubgroupState, peer_value};
use super::watched::{Impossible, Misbehaved, Refused};
use crate::ids::Rank;
use crate::layout::ControlCell;
use crate::memory::{OutOfRow, Row};

/// Reads the other members' durable counts, and reports a member whose count has shrunk. Also
/// called for a subgroup without senders, whose earlier messages may still become durable.
pub(crate) fn see_durable(
    subgroup: &mut SubgroupState,
    members: &mut [MemberState],
    rows: &[Row<'_>],
    own_rank: Rank,
) -> Result<Option<Misbehaved>, OutOfRow> {
    let mut refused: Option<Refused> = None;
    if !subgroup.is_logged {
        return Ok(None);
    }
    // bound: the members of the subgroup
    for member in members.iter_mut() {
        if member.rank == own_rank || member.lost {
            continue;
        }
        let (place, cell) = ((member.rank, member.control), ControlCell::Durable);
        let shown = peer_value(rows, place, cell, subgroup.checks)?;
        if let Err(what) = member.durable.look(shown, u64::MAX, Impossible::Shrunk) {
            refused = Some(Refused { rank: member.rank, what });
        }
    }
    Ok(refused.map(|refused| {
        subgroup.refused.get_or_insert(refused);
        Misbehaved(refused.rank)
    }))
}
