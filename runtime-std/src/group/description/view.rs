//! A view, identical at all members (VIE-1).

use serde::{Deserialize, Serialize};
use tramontane_core::ids::{NodeId, SubgroupId, ViewId};

use super::subgroup_change::{SubgroupChange, nodes_of};
use super::terms::Description;

/// The first view. Ids start at 1, so that fresh zeroed memory names no view.
pub const FIRST_VIEW: ViewId = ViewId(1);

/// The members of the group between two changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The view's number, which rises by one with each change.
    pub id: ViewId,
    /// The members, in rank order.
    pub members: Vec<NodeId>,
    /// Subgroups without members: those that have lost all members, and therefore their state, and
    /// must not restart empty (VIE-10); and reserved subgroups that are not open.
    pub closed: Vec<SubgroupId>,
}

impl View {
    /// Returns the first view of a group.
    #[must_use]
    pub fn first(description: &Description) -> Self {
        let members = description.initial.iter().copied().map(NodeId).collect();
        let first = Self { id: FIRST_VIEW, members, closed: Vec::new() };
        first.without_reserved(description)
    }

    /// Returns a view of all nodes, which is the largest possible view.
    #[must_use]
    pub fn of_all(description: &Description) -> Self {
        let members = description.nodes.iter().map(|node| NodeId(node.id)).collect();
        Self { id: FIRST_VIEW, members, closed: Vec::new() }
    }

    /// Returns the next view, from a list that the core has agreed on. The list names the next
    /// members, and opens or closes reserved subgroups.
    #[must_use]
    pub fn next(&self, description: &Description, list: &[NodeId]) -> Self {
        let members = nodes_of(description, list);
        let mut closed = self.closed.clone();
        for (id, subgroup) in (0..).map(SubgroupId).zip(&description.subgroups) {
            let had_members = !self.subgroup_members(description, id).is_empty();
            let has_survivor =
                self.subgroup_members(description, id).iter().any(|node| members.contains(node));
            if had_members && !has_survivor && !subgroup.restart_empty {
                closed.push(id);
            }
        }
        let mut next = Self { id: self.id.next(), members, closed };
        for change in list.iter().filter_map(|id| SubgroupChange::of_id(description, *id)) {
            let of = description.subgroups.get(change.subgroup.index());
            if of.is_some_and(|of| of.reserved) {
                next.change(change);
            }
        }
        next
    }

    fn change(&mut self, change: SubgroupChange) {
        if change.opens {
            self.closed.retain(|closed| *closed != change.subgroup);
        } else if !self.is_closed(change.subgroup) {
            self.closed.push(change.subgroup);
        }
    }

    /// Returns the view with all reserved subgroups closed.
    #[must_use]
    pub(crate) fn without_reserved(mut self, description: &Description) -> Self {
        for (subgroup, of) in (0..).map(SubgroupId).zip(&description.subgroups) {
            if of.reserved {
                self.change(SubgroupChange { subgroup, opens: false });
            }
        }
        self
    }

    /// Returns whether a subgroup has lost its state for good, or is reserved and not open.
    #[must_use]
    pub fn is_closed(&self, subgroup: SubgroupId) -> bool {
        self.closed.contains(&subgroup)
    }

    /// Returns the members of a subgroup in this view, in the subgroup's own order.
    #[must_use]
    pub fn subgroup_members(&self, description: &Description, subgroup: SubgroupId) -> Vec<NodeId> {
        if self.is_closed(subgroup) {
            return Vec::new();
        }
        let nodes =
            description.subgroups.get(subgroup.index()).map_or(&[][..], |found| found.members());
        nodes.iter().copied().map(NodeId).filter(|node| self.members.contains(node)).collect()
    }

    /// Returns the rank of a node.
    #[must_use]
    pub fn rank_of(&self, node: NodeId) -> Option<tramontane_core::ids::Rank> {
        let index = self.members.iter().position(|member| *member == node)?;
        u16::try_from(index).ok().map(tramontane_core::ids::Rank)
    }
}

/// A view as sent to other processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WireView {
    id: u64,
    members: Vec<u32>,
    closed: Vec<u16>,
}

impl WireView {
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn members(&self) -> Vec<NodeId> {
        self.members.iter().copied().map(NodeId).collect()
    }
}

impl From<&View> for WireView {
    fn from(view: &View) -> Self {
        Self {
            id: view.id.0,
            members: view.members.iter().map(|node| node.get()).collect(),
            closed: view.closed.iter().map(|subgroup| subgroup.0).collect(),
        }
    }
}

impl From<WireView> for View {
    fn from(view: WireView) -> Self {
        Self {
            id: ViewId(view.id),
            members: view.members.into_iter().map(NodeId).collect(),
            closed: view.closed.into_iter().map(SubgroupId).collect(),
        }
    }
}
