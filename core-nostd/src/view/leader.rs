//! Which member leads, and what it waits for (VIE-4).
//!
//! Requirement: VIE-5.

use super::cells::{Ballot, Stance};
use super::state::{Cause, ViewStep};
use super::table::{Host, Table};
use crate::ids::Rank;
use crate::layout::ViewColumn;

/// Where a leader finds another member.
enum Place {
    /// It follows, or may come to.
    Here,
    /// It suspects this member, and follows a later leader.
    GoneOn,
    /// No correct member can be there: it would never follow, and never be missed.
    Nowhere,
}

impl<T: Table, H: Host> ViewStep<'_, T, H> {
    /// The lowest rank that is not suspected. There is one: no member suspects itself.
    pub(super) fn leader(&self) -> Rank {
        self.unsuspected().next().unwrap_or(self.state.rank)
    }

    /// Publishes that nothing of the ranks below the leader is accepted any more.
    pub(super) fn promise(&mut self, leader: Rank) {
        let stance = self.own_stance();
        if leader > stance.promise {
            self.table.publish(ViewColumn::Stance, Stance { promise: leader, ..stance }.encode());
        }
    }

    /// Whether every unsuspected member follows this member, and they are a majority.
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
                // The next step takes the suspicion over, and this member halts.
                Place::GoneOn => return false,
                Place::Nowhere => {
                    self.suspect(rank, Cause::Misbehaved);
                    return false;
                }
            }
        }
        follow && self.has_majority()
    }

    /// Where a stance that was just looked at puts its owner, as this member sees it, which leads.
    fn place_of(&self, owner: Rank, stance: Stance) -> Place {
        let (own, accepted) = (self.state.rank, self.own_stance().accepted);
        let shown = stance.accepted;
        if stance.promise > own || shown.ballot > Ballot::of(own) {
            // In this order: a member that turns to a later leader says first that it suspects this
            // one.
            return if self.shows_suspicion(owner, own) { Place::GoneOn } else { Place::Nowhere };
        }
        // No member can have accepted more of the own list than there is of it.
        let too_much = shown.ballot == Ballot::of(own) && shown > accepted;
        if too_much { Place::Nowhere } else { Place::Here }
    }
}
