//! A node's record of its last membership.

use serde::{Deserialize, Serialize};
use tramontane_core::ids::{NodeId, SubgroupId, ViewId};

use super::noted_log::NotedLog;
use crate::group::description::terms::Description;
use crate::group::description::view::{View, WireView};
use crate::group::engine::promising::Promised;

/// The newest view that contained the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastMembership {
    pub(super) group: String,
    /// The digest of the description at that time.
    pub(super) digest: u64,
    pub(super) node: u32,
    /// The node's incarnation.
    pub(super) incarnation: u64,
    pub(crate) view: u64,
    pub(crate) members: Vec<u32>,
    /// The way in which the membership ended. `None` if the process ended first.
    pub(crate) end: Option<MembershipEnd>,
    /// The subgroups, logged or not, that have permanently lost their state.
    #[serde(default)]
    pub(crate) closed: Vec<u16>,
    /// The next view, if the node has promised one. The promise is in the same file as the view, so
    /// that the two cannot disagree.
    #[serde(default)]
    pub(crate) promise: Option<Promised>,
    /// The latest attempt of a total restart that the node took part in.
    #[serde(default)]
    pub(crate) heard: (u32, u32),
    /// Views that an operator allowed to begin with less than a majority of the previous view.
    #[serde(default)]
    pub(crate) with_less: Vec<u64>,
    /// The node's logs.
    #[serde(default)]
    pub(crate) logs: Vec<NotedLog>,
}

impl LastMembership {
    /// Creates the record of a node that has not been in any view yet: the note that the group is
    /// being formed.
    pub(crate) fn empty(description: &Description, node: NodeId) -> Self {
        Self {
            group: description.name.clone(),
            digest: description.digest(),
            node: node.get(),
            incarnation: 0,
            view: 0,
            members: Vec::new(),
            end: None,
            closed: Vec::new(),
            promise: None,
            heard: (0, 0),
            with_less: Vec::new(),
            logs: Vec::new(),
        }
    }

    /// Returns the note about the log of a subgroup.
    pub(crate) fn log(&self, subgroup: &str) -> Option<&NotedLog> {
        self.logs.iter().find(|log| log.subgroup == subgroup)
    }

    /// Returns whether the record says only that the group was being formed.
    pub(crate) const fn is_note(&self) -> bool {
        self.view == 0
    }

    pub(crate) fn wire_view(&self) -> WireView {
        let members = self.members.iter().copied().map(NodeId).collect();
        let closed = self.closed.iter().copied().map(SubgroupId).collect();
        WireView::from(&View::with_all_senders(ViewId(self.view), members, closed))
    }

    /// Records a view that has been decided.
    pub(crate) fn set_view(&mut self, view: &View) {
        self.view = view.id.0;
        self.members = view.members.iter().map(|node| node.get()).collect();
        self.closed = view.closed.iter().map(|subgroup| subgroup.0).collect();
        self.end = None;
    }
}

/// The ways in which a membership can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MembershipEnd {
    /// The node left, and others continued.
    Left,
    /// The node was the last member, and left, which ended the group.
    Last,
    /// The node was considered dead, or lost its majority.
    Halted,
    /// The member was closed, or failed.
    Failed,
}
