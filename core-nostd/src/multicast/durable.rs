//! What the members of a logged subgroup have made durable, each by its own account (DUR-1).
//!
//! # What holds
//! - A count only grows. A member whose count shrinks misbehaves: it has reported what it had not.
//! - The count of a member that is lost stays as it was: what is on its disk is there.

use super::Misbehaved;
use super::state::{Work, peer_cell};
use crate::ids::DurableCount;
use crate::layout::ControlCell;
use crate::memory::OutOfRow;

impl Work<'_, '_> {
    /// Looks at what the other members show to be durable with them, and reports one whose count
    /// shrank.
    pub(crate) fn see_durable(&mut self) -> Result<Option<Misbehaved>, OutOfRow> {
        let mut shrunk = None;
        if !self.subgroup.is_logged {
            return Ok(shrunk);
        }
        for member in self.members.iter_mut() {
            if member.rank == self.own_rank || member.lost {
                continue;
            }
            let cell = peer_cell(self.rows, member.rank, member.control, ControlCell::Durable)?;
            let shown = DurableCount(cell.load());
            if shown < member.durable {
                shrunk = Some(Misbehaved(member.rank));
            } else {
                member.durable = shown;
            }
        }
        Ok(shrunk)
    }
}
