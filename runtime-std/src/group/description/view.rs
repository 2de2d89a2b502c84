//! A view, identical at all members (VIE-1).

use serde::{Deserialize, Serialize};
use tramontane_core::ids::{NodeId, SubgroupId, ViewId};

use super::subgroup_change::{ChangedPart, SubgroupChange, nodes_of};
use super::terms::{Description, SubgroupDescription};

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
    /// Nodes that do not send in a subgroup although its description lists them as senders, because
    /// they had nothing to send.
    pub paused: Vec<(SubgroupId, NodeId)>,
}

impl View {
    /// Returns the first view of a group.
    #[must_use]
    pub fn first(description: &Description) -> Self {
        let members = description.initial.iter().copied().map(NodeId).collect();
        Self::with_all_senders(FIRST_VIEW, members, Vec::new()).without_reserved(description)
    }

    /// Returns a view of all nodes, which is the largest possible view.
    #[must_use]
    pub fn of_all(description: &Description) -> Self {
        let members = description.nodes.iter().map(|node| NodeId(node.id)).collect();
        Self::with_all_senders(FIRST_VIEW, members, Vec::new())
    }

    /// Returns a view in which no sender pauses.
    #[must_use]
    pub fn with_all_senders(id: ViewId, members: Vec<NodeId>, closed: Vec<SubgroupId>) -> Self {
        Self { id, members, closed, paused: Vec::new() }
    }

    /// Returns the next view, from a list that the core has agreed on. The list names the next
    /// members, and changes subgroups. A node that joins has not paused.
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
        let mut paused = self.paused.clone();
        paused.retain(|(_, node)| members.contains(node));
        let mut next = Self { id: self.id.next(), members, closed, paused };
        for change in list.iter().filter_map(|id| SubgroupChange::of_id(description, *id)) {
            if next.would_change(description, change) {
                next.change(description, change);
            }
        }
        next
    }

    /// Returns whether a change is permitted by the description and not in effect in this view.
    #[must_use]
    pub(crate) fn would_change(&self, description: &Description, change: SubgroupChange) -> bool {
        let Some(of) = description.subgroups.get(change.subgroup.index()) else { return false };
        match change.part {
            ChangedPart::Whole => of.reserved && self.is_closed(change.subgroup) == change.is_on,
            ChangedPart::Sender(index) => of.sender(index).is_some_and(|node| {
                of.pause_senders_after_ms > 0
                    && self.members.contains(&node)
                    && self.is_paused(change.subgroup, node) == change.is_on
            }),
        }
    }

    fn change(&mut self, description: &Description, change: SubgroupChange) {
        let SubgroupChange { subgroup, part, is_on } = change;
        let of = description.subgroups.get(subgroup.index());
        match part {
            ChangedPart::Whole if is_on => self.closed.retain(|closed| *closed != subgroup),
            ChangedPart::Whole => self.close(subgroup),
            ChangedPart::Sender(index) => {
                let sender = of.and_then(|of| of.sender(index)).map(|node| (subgroup, node));
                self.paused.retain(|paused| Some(*paused) != sender);
                self.paused.extend(sender.filter(|_| !is_on));
            }
        }
    }

    fn close(&mut self, subgroup: SubgroupId) {
        if !self.is_closed(subgroup) {
            self.closed.push(subgroup);
        }
        self.paused.retain(|(of, _)| *of != subgroup);
    }

    /// Returns the view with all reserved subgroups closed.
    #[must_use]
    pub(crate) fn without_reserved(mut self, description: &Description) -> Self {
        for (subgroup, of) in (0..).map(SubgroupId).zip(&description.subgroups) {
            if of.reserved {
                self.close(subgroup);
            }
        }
        self
    }

    /// Returns whether a subgroup has lost its state for good, or is reserved and not open.
    #[must_use]
    pub fn is_closed(&self, subgroup: SubgroupId) -> bool {
        self.closed.contains(&subgroup)
    }

    /// Returns whether a node that may send in a subgroup does not send in this view.
    #[must_use]
    pub fn is_paused(&self, subgroup: SubgroupId, node: NodeId) -> bool {
        self.paused.contains(&(subgroup, node))
    }

    /// Returns the members that send in a subgroup in this view, in sender order.
    #[must_use]
    pub fn subgroup_senders(&self, description: &Description, subgroup: SubgroupId) -> Vec<NodeId> {
        let of = description.subgroups.get(subgroup.index()).filter(|_| !self.is_closed(subgroup));
        of.map_or_else(Vec::new, |of| self.senders_of(subgroup, of).collect())
    }

    /// Returns the members that send in a subgroup that is not closed, in sender order.
    pub(super) fn senders_of(
        &self,
        subgroup: SubgroupId,
        of: &SubgroupDescription,
    ) -> impl Iterator<Item = NodeId> {
        let sends =
            move |node: &NodeId| self.members.contains(node) && !self.is_paused(subgroup, *node);
        of.senders().iter().copied().map(NodeId).filter(sends)
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
    paused: Vec<(u16, u32)>,
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
            paused: view.paused.iter().map(|(subgroup, node)| (subgroup.0, node.get())).collect(),
        }
    }
}

impl From<WireView> for View {
    fn from(view: WireView) -> Self {
        Self {
            id: ViewId(view.id),
            members: view.members.into_iter().map(NodeId).collect(),
            closed: view.closed.into_iter().map(SubgroupId).collect(),
            paused: view
                .paused
                .into_iter()
                .map(|(subgroup, node)| (SubgroupId(subgroup), NodeId(node)))
                .collect(),
        }
    }
}
