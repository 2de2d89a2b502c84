//! The end of receiving (VIE-6).
//!
//! Requirement: VIE-8.

use super::state::{Status, ViewStep};
use super::table::{Host, Table};
use crate::ids::{Frontier, Rank, SubgroupId};
use crate::layout::{Delivery, Subgroup, ViewColumn};

/// Largest frontier that a correct member can publish; see
/// [`Order::round_limit`](crate::multicast::Order).
pub(super) const FRONTIER_MAX: u64 = u64::MAX >> 2;

impl<T: Table, H: Host> ViewStep<'_, T, H> {
    /// Stops receiving, then publishes the received frontiers. This is done once, before anything
    /// is accepted, so any later delivery by other members is based on at most these frontiers.
    pub(super) fn wedge(&mut self) {
        if self.state.status != Status::Steady {
            return;
        }
        self.state.status = Status::Wedged;
        self.host.wedge();
        let own = self.state.rank;
        let mut id = SubgroupId::ZERO;
        // bound: the subgroups
        while let Some(subgroup) = self.layout.subgroup(id) {
            if is_trimmed(subgroup) && subgroup.has_member(own) {
                let count = self.host.received(id).0.min(FRONTIER_MAX);
                self.table.publish(ViewColumn::Wedged(id), count.saturating_add(1));
            }
            id = id.next();
        }
    }

    /// Returns the final count of a member in a subgroup, if the member publishes one, or an error
    /// if the count is impossible.
    pub(super) fn final_count(
        &self,
        owner: Rank,
        id: SubgroupId,
    ) -> Result<Option<Frontier>, ImpossibleCount> {
        match self.table.load(owner, ViewColumn::Wedged(id)).checked_sub(1) {
            None => Ok(None),
            Some(count) if count <= FRONTIER_MAX => Ok(Some(Frontier(count))),
            Some(_) => Err(ImpossibleCount),
        }
    }
}

/// A count that no correct member publishes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImpossibleCount;

/// Returns whether a subgroup has a trim: only ordered subgroups have one (DEL-3).
pub(super) fn is_trimmed(subgroup: &Subgroup<'_>) -> bool {
    subgroup.delivery == Delivery::Ordered
}
