//! The promises that a member makes before a view ends. They are on disk before other members see
//! them (DUR-6).
//!
//! The core requests a promise during a step. The promise is written after that step, and a later
//! step informs the core.

use serde::{Deserialize, Serialize};
use tramontane_core::ids::NodeId;
use tramontane_core::node::Preparation;
use tramontane_core::restart::PromiseBallot;
use tramontane_core::view::{Ballot, NextView};

use crate::group::description::subgroup_change::nodes_of;
use crate::group::description::terms::Description;

/// A view that a node has promised to move to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Promised {
    /// The leader to whom the promise was made, as the attempt of a restart and the leader of that
    /// attempt.
    pub(crate) ballot: (u32, u32),
    pub(crate) view: u64,
    pub(crate) members: Vec<u32>,
    /// For each logged subgroup of the description, the end of this node's log in that view. `None`
    /// if the node has no log.
    pub(crate) ends: Vec<Option<u64>>,
}

impl Promised {
    pub(crate) const fn ballot(&self) -> PromiseBallot {
        PromiseBallot { attempt: self.ballot.0, leader: self.ballot.1 }
    }
}

/// A promise that the core has requested, before the ends of the logs are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingPromise {
    pub(crate) ballot: Ballot,
    pub(crate) view: u64,
    pub(crate) list: Vec<NodeId>,
}

impl PendingPromise {
    fn new(next: NextView<'_>, ballot: Ballot) -> Self {
        Self { ballot, view: next.id.0, list: next.members.to_vec() }
    }

    /// Adds the ends of the logs, which contain everything up to the ragged trims. The promise
    /// excludes the reserved subgroups that the view opens, because all of them are closed after a
    /// total restart.
    pub(crate) fn with_ends(self, description: &Description, ends: Vec<Option<u64>>) -> Promised {
        let ballot = (0, u32::from(self.ballot.0));
        let members = nodes_of(description, &self.list).into_iter().map(NodeId::get).collect();
        Promised { ballot, view: self.view, members, ends }
    }
}

/// The promises of the current view: the one on disk, and the one that is still to be written.
#[derive(Debug, Default)]
pub(crate) struct Promising {
    pub(crate) kept: Option<PendingPromise>,
    pub(crate) wanted: Option<PendingPromise>,
    /// Whether no promise is needed, because the group has no logged subgroup.
    pub(crate) is_free: bool,
}

/// Handles the core's requests during a step: for memory, through `prepare`, and for a promise.
pub(crate) struct Preparing<'p, P> {
    pub(crate) prepare: P,
    pub(crate) promising: &'p mut Promising,
}

impl<P: FnMut(NextView<'_>) -> bool> Preparation for Preparing<'_, P> {
    fn prepare(&mut self, next: NextView<'_>) -> bool {
        (self.prepare)(next)
    }

    fn promise(&mut self, next: NextView<'_>, ballot: Ballot) -> bool {
        let asked = PendingPromise::new(next, ballot);
        let is_kept = self.promising.is_free || self.promising.kept.as_ref() == Some(&asked);
        if !is_kept {
            self.promising.wanted = Some(asked);
        }
        is_kept
    }
}
