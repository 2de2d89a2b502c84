//! The number of messages that each member of a logged subgroup reports as durable (DUR-1).
//!
//! # Invariants
//! - A count never decreases. A member whose count shrinks misbehaves, because it has reported
//!   messages that were not durable.
//! - The count of a lost member remains unchanged, because its disk still has the messages.
//!
//! Requirement: DUR-9.

use super::state::{Work, peer_value};
use super::watched::{Impossible, Misbehaved, Refused};
use crate::layout::ControlCell;
use crate::memory::OutOfRow;

impl Work<'_, '_> {
    /// Reads the other members' durable counts, and reports a member whose count has shrunk.
    pub(crate) fn see_durable(&mut self) -> Result<Option<Misbehaved>, OutOfRow> {
        let mut refused: Option<Refused> = None;
        if !self.subgroup.is_logged {
            return Ok(None);
        }
        // bound: the members of the subgroup
        for member in self.members.iter_mut() {
            if member.rank == self.own_rank || member.lost {
                continue;
            }
            let (place, cell) = ((member.rank, member.control), ControlCell::Durable);
            let shown = peer_value(self.rows, place, cell, self.subgroup.checks)?;
            if let Err(what) = member.durable.look(shown, u64::MAX, Impossible::Shrunk) {
                refused = Some(Refused { rank: member.rank, what });
            }
        }
        Ok(refused.map(|refused| self.refuse(refused.rank, refused.what)))
    }
}
