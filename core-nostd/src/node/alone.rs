//! A pair in which one member has failed: the other continues without it.
//!
//! # Why it is safe for a pair
//! This member has received everything that its partner delivered, because messages became stable
//! at the partner only through the frontiers that this member published. So everything that this
//! member delivers on its own comes later in the order. With three members that would not hold: two
//! survivors may have received different sets of messages, so a view change is needed to agree on
//! the end.
//!
//! Requirement: HLT-2.

use super::Node;
use crate::ids::Rank;
use crate::layout::{ControlCell, Delivery};
use crate::memory::OutOfRow;
use crate::multicast::Control;

/// Reason why a member cannot continue without its partner. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum AloneError {
    /// The group has more than two members, or it has views, in which case the view protocol agrees
    /// on the survivors.
    NotAPair = 1,
    /// The node's state and memory do not belong together.
    OutOfRow = 2,
}

impl core::fmt::Display for AloneError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::NotAPair => {
                "only a member of a fixed group of two can continue without its partner"
            }
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
    /// Continues without the partner, in a pair with a fixed membership: nothing more is read from
    /// the partner, the messages received from it are delivered, and nothing waits for the partner.
    /// Call this only if the partner does not continue as well: see
    /// [`decide`](crate::health::decide). The call cannot be undone; the partner can take part
    /// again only in a new group.
    ///
    /// # Errors
    /// See [`AloneError`].
    pub fn go_on_alone(&mut self) -> Result<(), AloneError> {
        let is_pair = self.rows.len() == 2 && self.subgroups.iter().all(|one| one.is_fixed);
        if !is_pair {
            return Err(AloneError::NotAPair);
        }
        self.disturb_all();
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
                // All the partner's rounds count as used: the rounds after the received ones are
                // nulls.
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

    /// Returns whether this member continues without its partner, or has no partner.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        !self.lost && self.members.iter().all(|member| member.rank == self.rank || member.lost)
    }
}
