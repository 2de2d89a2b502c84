//! Durable counts at a node. The caller handles files and threads; this module only tracks the
//! number of messages that each member has made durable (DUR-9).
//!
//! Requirement: DUR-1.

use super::Node;
use crate::ids::{DurableCount, SubgroupId};
use crate::layout::ControlCell;
use crate::multicast::{Control, MemberState, SubgroupSet};

/// The numbers of durable messages in a logged subgroup, as known at this member (DUR-2). Each is a
/// count since the group began, and none exceeds the true value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DurableCounts {
    /// Number of messages durable at this member.
    pub here: DurableCount,
    /// Number of messages durable at a majority of the subgroup's members in this view.
    pub majority: DurableCount,
    /// Number of messages durable at all of the subgroup's members.
    pub everywhere: DurableCount,
}

impl Node<'_> {
    /// Sets the number of messages in a logged subgroup, counted since the group began, that are
    /// durable at this member. Call it after the syncs for all of them have returned. The next step
    /// informs the other members. A count that is not above the last count changes nothing.
    ///
    /// In a new view the caller must set the count again, because a fresh row starts at zero.
    pub fn set_durable(&mut self, subgroup: SubgroupId, count: DurableCount) {
        let state = self.subgroups.iter_mut().find(|state| state.id == subgroup);
        let Some(state) = state.filter(|state| state.is_logged) else { return };
        let members = state.members.of_mut(self.members).unwrap_or_default();
        let own = members.iter_mut().find(|member| member.rank == self.rank);
        let Some(own) = own.filter(|own| own.durable.count < count.0) else { return };
        let control = Control::new(self.row, state);
        if control.publish(ControlCell::Durable, count.0).is_ok() {
            own.durable.count = count.0;
            state.version = state.version.saturating_add(1);
            self.lagging = SubgroupSet::ALL;
        }
    }

    /// Returns a subgroup's durable counts: here, at a majority, and everywhere. Returns `None` if
    /// this node does not belong to the subgroup or the subgroup is not logged. The run time grows
    /// with the square of the number of its members.
    #[must_use]
    pub fn durable(&self, subgroup: SubgroupId) -> Option<DurableCounts> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let members = state.members.of(self.members).filter(|_| state.is_logged)?;
        let own = members.iter().find(|member| member.rank == self.rank)?;
        Some(DurableCounts {
            here: DurableCount(own.durable.count),
            majority: with_majority(members),
            everywhere: counts(members).min()?,
        })
    }
}

/// Returns the highest count that a majority has reached.
fn with_majority(members: &[MemberState]) -> DurableCount {
    let majority = members.len().saturating_add(1).div_ceil(2);
    let reached = |count: &DurableCount| {
        let has = counts(members).filter(|other| other >= count);
        has.fold(0_usize, |sum, _| sum.saturating_add(1)) >= majority
    };
    counts(members).filter(reached).max().unwrap_or_default()
}

fn counts(members: &[MemberState]) -> impl Iterator<Item = DurableCount> {
    members.iter().map(|member| DurableCount(member.durable.count))
}
