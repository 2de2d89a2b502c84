//! The leader of a change, and the conditions under which a member may lead (VIE-4).
//!
//! Requirement: VIE-5.

use super::cells::{Ballot, Stance};
use super::state::{Cause, ViewStep};
use super::table::{Host, Table};
use crate::ids::Rank;
use crate::layout::ViewColumn;

/// The state of another member, as seen by a leader.
enum Place {
    /// The member follows this leader, or may still do so.
    Here,
    /// The member suspects this member and follows a later leader.
    GoneOn,
    /// No correct member can be in this state, in which it would neither follow nor ever be
    /// suspected.
    Nowhere,
}

impl<T: Table, H: Host> ViewStep<'_, T, H> {
    /// Returns the lowest rank that is not suspected. There is one, because no member suspects
    /// itself.
    pub(super) fn leader(&self) -> Rank {
        self.unsuspected().next().unwrap_or(self.state.rank)
    }

    /// Publishes that nothing is accepted any longer from the ranks below the leader.
    pub(super) fn promise(&mut self, leader: Rank) {
        let stance = self.own_stance();
        if leader > stance.promise {
            self.table.publish(ViewColumn::Stance, Stance { promise: leader, ..stance }.encode());
        }
    }

    /// Returns whether every unsuspected member follows this member, and these members are a
    /// majority.
    pub(super) fn may_lead(&mut self) -> bool {
        let own = self.state.rank;
        let mut follow = true;
        // bound: the members
        for rank in self.ranks() {
            if rank == own || self.suspects(rank) {
                continue;
            }
            let stance = self.stance(rank);
            match self.place_of(rank, stance) {
                Place::Here => follow &= stance.promise == own,
                // The next step adopts the suspicion, and this member halts.
                Place::GoneOn => return false,
                Place::Nowhere => {
                    self.suspect(rank, Cause::Misbehaved);
                    return false;
                }
            }
        }
        follow && self.has_majority()
    }

    /// Classifies a member by the stance that was just read, from the viewpoint of this member as
    /// the leader.
    fn place_of(&self, owner: Rank, stance: Stance) -> Place {
        let (own, accepted) = (self.state.rank, self.own_stance().accepted);
        let shown = stance.accepted;
        if stance.promise > own || shown.ballot > Ballot::of(own) {
            // The suspicions are read after the stance: a member that turns to a later leader first
            // publishes that it suspects this member.
            return if self.shows_suspicion(owner, own) { Place::GoneOn } else { Place::Nowhere };
        }
        // No member can have accepted more of this leader's list than exists.
        let too_much = shown.ballot == Ballot::of(own) && shown > accepted;
        if too_much { Place::Nowhere } else { Place::Here }
    }
}
