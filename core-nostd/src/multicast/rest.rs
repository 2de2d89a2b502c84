//! The cells that can bring work to a subgroup at rest (BAT-5). A look at the cells costs a quarter
//! of a look at the subgroup, so subgroups without messages cost little.
//!
//! A subgroup is at rest if its last complete look changed nothing: no message was sent, received,
//! delivered or freed, no round was used, no cell failed its check, and no member misbehaved. A
//! look depends only on the node's private state, on the cells named here, and on time.
//! Time matters only while a reservation is held, which also shows here. As long as the private
//! state and these cells remain the same, another complete look would therefore change nothing.
//!
//! # Invariants
//! - Whatever changes the private state of a subgroup outside its own look ends its rest.
//! - A cell that a stage reads is compared here with the value on which that stage last acted. A
//!   cell that fails its check counts as changed.
//! - A change that is not visible yet is seen by a later look. Nothing is read here on which a
//!   stage then relies: it reads each cell again, and content only after its guard.
//!
//! Requirement: BAT-5.

use super::look::Limits;
use super::state::{MemberState, SenderState, SubgroupState, peer_value};
use crate::ids::{Rank, Round};
use crate::layout::{ControlCell, Delivery};
use crate::memory::Row;
use crate::smc::HandOffCells;

/// A subgroup at rest, with its senders and members, all hand-offs of the node, and all rows.
#[derive(Clone, Copy)]
pub(crate) struct Rest<'w, 'm> {
    pub(crate) subgroup: &'w SubgroupState,
    pub(crate) senders: &'w [SenderState],
    pub(crate) members: &'w [MemberState],
    pub(crate) cells: &'w [HandOffCells],
    pub(crate) rows: &'w [Row<'m>],
    pub(crate) own_rank: Rank,
}

impl Rest<'_, '_> {
    /// Returns whether a complete look would change nothing. If this cannot be told, returns false.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        let Some(order) = self.subgroup.order else { return true };
        let Some(freed_by) = self.own_cell() else { return false };
        let limits = Limits::of(self.subgroup, order);
        // bound: the senders
        for sender in self.senders {
            if sender.rank == self.own_rank || sender.lost {
                continue;
            }
            if !self.is_silent(sender, &limits) {
                return false;
            }
        }
        // bound: the members of the subgroup
        for member in self.members {
            if member.rank == self.own_rank || member.lost {
                continue;
            }
            if !self.is_still(member, freed_by) {
                return false;
            }
        }
        true
    }

    /// Returns the cell of the other members that frees this node's slots, if some of them are not
    /// free. Returns `None` if an application thread has asked for something.
    fn own_cell(&self) -> Option<Option<ControlCell>> {
        let Some(own) = self.subgroup.own.as_ref() else { return Some(None) };
        let state = self.senders.get(own.rank.index())?;
        if !self.cells.get(own.handoff)?.is_at(state.take.position) {
            return None;
        }
        if own.freed == state.take {
            return Some(None);
        }
        Some(Some(match self.subgroup.delivery {
            Delivery::Ordered => ControlCell::Delivered,
            Delivery::Unordered => ControlCell::Consumed(own.rank),
        }))
    }

    /// Returns whether a sender's next slot and its silence show nothing new.
    #[inline(always)]
    fn is_silent(&self, sender: &SenderState, limits: &Limits) -> bool {
        let Some(row) = self.rows.get(sender.rank.index()) else { return false };
        let Ok(ring) = row.ring_at(&sender.ring) else { return false };
        let Some(counter) = ring.read_counter(sender.take.slot) else { return false };
        if !limits.is_nothing(sender, counter) {
            return false;
        }
        #[cfg(feature = "relays")]
        if let Some(relay) = &self.subgroup.relay
            && !relay.is_quiet(&ring, sender, limits.window)
        {
            return false;
        }
        self.subgroup.delivery == Delivery::Unordered
            || self
                .shown((sender.rank, sender.control), ControlCell::Silent)
                .is_some_and(|silent| Round(silent) <= sender.taken)
    }

    /// Returns whether the counts of another member are those last seen, as far as the stages read
    /// them. The received frontier of a lone sender, which no stage reads, soon equals the number
    /// of its messages, so it is not treated separately.
    #[inline(always)]
    fn is_still(&self, member: &MemberState, freed_by: Option<ControlCell>) -> bool {
        let place = (member.rank, member.control);
        let is_at = |cell, count| self.shown(place, cell) == Some(count);
        if freed_by.is_some_and(|cell| !is_at(cell, member.delivered.count)) {
            return false;
        }
        #[cfg(feature = "durable")]
        if self.subgroup.is_logged && !is_at(ControlCell::Durable, member.durable.count) {
            return false;
        }
        self.subgroup.delivery == Delivery::Unordered
            || is_at(ControlCell::Received, member.received.count)
    }

    #[inline(always)]
    fn shown(&self, place: (Rank, usize), cell: ControlCell) -> Option<u64> {
        peer_value(self.rows, place, cell, self.subgroup.checks).ok().flatten()
    }
}
