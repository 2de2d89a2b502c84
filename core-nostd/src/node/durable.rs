//! Durable counts at a node. Files and threads are its caller's; here is who has what (DUR-9).
//!
//! Requirement: DUR-1.

use super::Node;
use crate::ids::{DurableCount, SubgroupId};
use crate::layout::ControlCell;
use crate::multicast::{Control, MemberState};

/// How many messages of a logged subgroup are durable, as far as is known here (DUR-2). Each is a
/// count since the group began, and none is ahead of what holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DurableCounts {
    /// With this member.
    pub here: DurableCount,
    /// With a majority of the subgroup's members in this view.
    pub majority: DurableCount,
    /// With all of them.
    pub everywhere: DurableCount,
}

impl Node<'_> {
    /// Says how many messages of a logged subgroup are durable here since the group began: syncs
    /// have returned for all of them. The next step tells the others. A count that is not above the
    /// last one changes nothing.
    ///
    /// In a new view the caller says it again: a fresh row begins with zero.
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
            self.lagging = true;
        }
    }

    /// What is durable of a subgroup: here, with a majority, and everywhere. Nothing if this node
    /// does not belong to it, or it is not logged. Time grows with the square of its members.
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

/// The highest count that a majority has reached.
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
