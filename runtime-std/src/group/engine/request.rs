//! Requests of other threads to the thread that drives a member.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tramontane_control::Session;
use tramontane_core::ids::{NodeId, SubgroupId, ViewId};

use crate::group::description::subgroup_change::SubgroupChange;
use crate::group::supply::queue::{QueueId, Sink};
use crate::group::supply::wanted::Wanted;

/// One request.
pub(crate) enum Request {
    /// A node that is a member, or is to become one, is connected.
    Connected { node: NodeId, session: Session, call: Call },
    /// A node wants the state of these subgroups, and everything delivered after it; for some
    /// subgroups, the records of the log from a number on instead of a state.
    Supply { node: NodeId, wanted: Wanted, sink: Sink },
    /// A node that takes over state has caught up, and is to be admitted. Each of its subgroups is
    /// supplied by the member given.
    Wish { node: NodeId, sources: Vec<(SubgroupId, NodeId)> },
    /// A node that takes over state is gone, or was admitted and is gone before it reported that it
    /// is ready. `led` says whether this member leads its join.
    Gone { node: NodeId, led: bool, queue: QueueId },
    /// Open or close a reserved subgroup.
    Change(SubgroupChange),
    /// Leave the group.
    Leave,
}

/// The sending end of the requests.
pub(crate) type Requests = crate::requests::Requests<Request>;

/// The side whose call made a connection.
#[derive(Debug)]
pub(crate) enum Call {
    /// This process's call.
    Own {
        /// True once the node is out of the view.
        is_ended: Arc<AtomicBool>,
    },
    /// The call of a node that joined in this view.
    Theirs { view: ViewId },
}
