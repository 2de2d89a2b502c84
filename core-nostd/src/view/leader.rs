//! Who leads, and what it waits for (VIE-4).

use super::cells::Stance;
use super::planted::Fault;
use super::state::Turn;
use super::table::{Host, Table};
use crate::ids::Rank;
use crate::layout::ViewColumn;

impl<T: Table, H: Host> Turn<'_, T, H> {
    /// The lowest rank that is not suspected. There is one: no member suspects itself.
    pub(super) fn leader(&self) -> Option<Rank> {
        self.unsuspected().next()
    }

    /// Publishes that nothing of the ranks below the leader is accepted any more.
    pub(super) fn promise(&mut self, leader: Rank) {
        let stance = self.own_stance();
        if leader > stance.promise {
            self.table.publish(ViewColumn::Stance, Stance { promise: leader, ..stance }.encode());
        }
    }

    /// Whether everyone who is not suspected follows this member, and they are a majority.
    pub(super) fn may_lead(&self) -> bool {
        let own = self.state.rank;
        let follow = self.unsuspected().all(|rank| self.stance(rank).promise == own);
        (follow || self.state.planted(Fault::TakeoverTooEarly)) && self.has_majority()
    }
}
