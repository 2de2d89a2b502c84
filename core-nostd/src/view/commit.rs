//! Commitment of a list, and the decision on the next view (VIE-5, VIE-6).
//!
//! Requirements: VIE-1, VIE-4, VIE-9.

use super::cells::{Accepted, Ballot, Committed};
use super::proposal::Unusable;
use super::state::{Cause, Status, ViewStep};
use super::table::{Host, Table};
use crate::ids::Rank;
use crate::layout::ViewColumn;

impl<T: Table, H: Host> ViewStep<'_, T, H> {
    /// Performs the leader's part: takes over if this has not been done, then adds the pending
    /// changes, then commits the list that every unsuspected member has accepted, then seals it.
    pub(super) fn lead(&mut self) {
        if !self.may_lead() {
            return;
        }
        let accepted = self.own_stance().accepted;
        if accepted.ballot != Ballot::of(self.state.rank) {
            return self.take_over();
        }
        // No other member writes the local list.
        let Ok(shape) = self.read_list(self.state.rank, accepted) else { return };
        if shape.sealed {
            return;
        }
        let committed = self.committed(self.state.rank).accepted;
        let open = committed.ballot != accepted.ballot;
        let count = self.append_wanted(accepted.count, shape.joins, open);
        if count > accepted.count {
            return self.publish_own(count);
        }
        if !self.all_accepted(accepted) {
            return;
        }
        if committed != accepted {
            self.table
                .publish(ViewColumn::Committed, Committed { decided: false, accepted }.encode());
        }
        self.seal(count);
    }

    /// Returns whether every unsuspected member has accepted exactly this list, and these members
    /// are a majority of the view.
    fn all_accepted(&self, list: Accepted) -> bool {
        self.unsuspected().all(|rank| self.stance(rank).accepted == list) && self.has_majority()
    }

    /// Decides once every unsuspected member has accepted the sealed list. Each member detects this
    /// for itself.
    pub(super) fn decide(&mut self) {
        if self.own_is_sealed() && self.all_accepted(self.own_stance().accepted) {
            self.decided();
        }
    }

    /// Adopts a decision that an unsuspected member publishes: that member may have moved on, and
    /// may no longer answer anyone in this view. The decided list is exactly the list that the
    /// member names, as it is in that member's row. The local list counts only if it says the same,
    /// change by change and trim by trim.
    pub(super) fn learn(&mut self) {
        let own = self.state.rank;
        let knows = |rank: Rank| {
            let committed = self.committed(rank);
            if rank != own && committed.decided { Some((rank, committed.accepted)) } else { None }
        };
        // A single read is enough, because the decision cell suffices by itself; the owner's stance
        // may still be in flight.
        let Some((owner, list)) = self.unsuspected().find_map(knows) else { return };
        // The suspicions are read after the decision: the owner still suspects the members that it
        // suspected when it decided. If this member is among them, it is not in that view.
        if !self.shares_suspicions_of(owner) {
            return;
        }
        match self.accept_from(owner, list) {
            _ if self.state.status.is_final() => {}
            Ok(()) if self.own_is_sealed() && self.agrees_with(owner, list) => self.decided(),
            Err(Unusable::NotNow) => {}
            Ok(()) | Err(Unusable::Wrong) => self.suspect(owner, Cause::Misbehaved),
        }
    }

    fn decided(&mut self) {
        let accepted = self.own_stance().accepted;
        self.state.status = Status::Decided;
        self.table.publish(ViewColumn::Committed, Committed { decided: true, accepted }.encode());
    }
}
