//! A pair of which one member is gone: the other goes on alone.
//!
//! # Why it is safe for a pair
//! What the partner has delivered, this member had shown to have: it was stable at the partner only
//! by what this one published. So whatever this one delivers alone comes behind that. Among three
//! that would not hold: two that go on may have received different ends, and it takes a view change
//! to agree on one.
//!
//! Requirement: HLT-2.

use super::Node;
use crate::ids::Rank;
use crate::layout::{ControlCell, Delivery};
use crate::memory::OutOfRow;
use crate::multicast::Control;

/// Why a member cannot go on alone. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum AloneError {
    /// There are more than two members, or views, which agree on who goes on.
    NotAPair = 1,
    /// State and memory do not belong together.
    OutOfRow = 2,
}

impl core::fmt::Display for AloneError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::NotAPair => "only one of two members of a fixed group goes on alone",
            Self::OutOfRow => "the node's state and its memory do not belong together",
        })
    }
}

impl core::error::Error for AloneError {}

impl From<OutOfRow> for AloneError {
    fn from(_: OutOfRow) -> Self {
        Self::OutOfRow
    }
}

impl Node<'_> {
    /// Goes on without the partner, of a pair with a fixed membership: nothing more is read from
    /// it, what was received from it is delivered, and nothing waits for it. Only where the partner
    /// does not go on too: see [`decide`](crate::health::decide). It cannot be taken back; the
    /// partner takes part again in a new group alone.
    ///
    /// # Errors
    /// See [`AloneError`].
    pub fn go_on_alone(&mut self) -> Result<(), AloneError> {
        let is_pair = self.rows.len() == 2 && self.subgroups.iter().all(|one| one.is_fixed);
        if !is_pair {
            return Err(AloneError::NotAPair);
        }
        let own = self.rank;
        let partner = if own == Rank(0) { Rank(1) } else { Rank(0) };
        // bound: the members of all subgroups
        for member in self.members.iter_mut().filter(|member| member.rank == partner) {
            member.lost = true;
            (member.received.count, member.delivered.count) = (u64::MAX, u64::MAX);
        }
        // bound: the links
        for link in self.links.iter_mut() {
            link.lost = true;
        }
        // bound: the subgroups
        for state in self.subgroups.iter_mut() {
            let Some(order) = state.order else { continue };
            let senders = state.senders.of_mut(self.senders).ok_or(OutOfRow)?;
            // bound: the senders
            for sender in senders.iter_mut().filter(|sender| sender.rank == partner) {
                sender.lost = true;
                // All its rounds count as used: those behind what was received are nulls.
                sender.taken = order.round_limit();
            }
            if state.delivery == Delivery::Ordered {
                state.received = order.frontier(senders.iter().map(|sender| sender.taken));
                Control::new(self.row, state).publish(ControlCell::Received, state.received.0)?;
            }
        }
        self.lost = false;
        Ok(())
    }

    /// Whether this member goes on alone, or has no partner.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        !self.lost && self.members.iter().all(|member| member.rank == self.rank || member.lost)
    }
}
