//! What other threads ask of the one that drives a member.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tramontane_control::Session;
use tramontane_core::ids::{NodeId, SubgroupId, ViewId};

use crate::group::description::subgroup_change::SubgroupChange;
use crate::group::supply::queue::{QueueId, Sink};
use crate::group::supply::wanted::Wanted;

/// One request.
pub(crate) enum Request {
    /// A node that is to be a member, or is one, is connected.
    Connected { node: NodeId, session: Session, call: Call },
    /// A node wants the state of these subgroups, and all that is delivered after it: of some the
    /// records of their logs from a number on, instead of a state.
    Supply { node: NodeId, wanted: Wanted, sink: Sink },
    /// A node that takes over state has caught up: it is to be admitted. Each of its subgroups
    /// comes from that member.
    Wish { node: NodeId, sources: Vec<(SubgroupId, NodeId)> },
    /// A node that takes over state is gone; or, if it was admitted already, before it reported
    /// that it is up. `led` says whether this member leads its join.
    Gone { node: NodeId, led: bool, queue: QueueId },
    /// Open or close a reserved subgroup.
    Change(SubgroupChange),
    /// Leave the group.
    Leave,
}

/// Where requests go in.
pub(crate) type Requests = crate::requests::Requests<Request>;

/// Whose call led to a connection.
#[derive(Debug)]
pub(crate) enum Call {
    /// This process's.
    Own {
        /// True once the node is out of the view.
        is_ended: Arc<AtomicBool>,
    },
    /// That of a node which came in this view.
    Theirs { view: ViewId },
}
