//! Requests from other threads to the thread that drives a member.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tramontane_control::Session;
use tramontane_core::ids::{NodeId, ViewId};

use crate::group::description::subgroup_change::SubgroupChange;
use crate::group::supply::queue::{QueueId, Sink};
use crate::group::supply::wanted::{ReadyJoiner, Wanted};

/// One request.
pub(crate) enum Request {
    /// A node that is, or is about to become, a member has been connected.
    Connected { node: NodeId, session: Session, call: Call },
    /// A node asks for the state of these subgroups, and for everything delivered after it. For
    /// some subgroups, it asks for log records starting at a given number instead of a state.
    Supply { node: NodeId, wanted: Wanted, sink: Sink },
    /// A node that takes over state has caught up, and is to be admitted.
    Wish(ReadyJoiner),
    /// A node that takes over state has been lost, or was admitted and then lost before it reported
    /// that it is ready. `led` says whether this member leads its join.
    Gone { node: NodeId, led: bool, queue: QueueId },
    /// Open or close a reserved subgroup, or pause a sender.
    Change(SubgroupChange),
    /// Leave the group.
    Leave,
}

/// The sending side of the request queue.
pub(crate) type Requests = crate::requests::Requests<Request>;

/// The side that called to establish a connection.
#[derive(Debug)]
pub(crate) enum Call {
    /// This process made the call.
    Own {
        /// Set once the node is out of the view.
        is_ended: Arc<AtomicBool>,
    },
    /// The call came from a node that joined in this view.
    Theirs { view: ViewId },
}
