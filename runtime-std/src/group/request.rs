//! What other threads ask of the one that drives a member.

use tramontane_control::Session;
use tramontane_core::ids::{NodeId, SubgroupId};

use super::joiners::Wanted;
use super::peer_connector::Call;
use super::queue::{QueueId, Sink};
use super::subgroup_change::SubgroupChange;

/// One request.
pub(super) enum Request {
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
pub(super) type Requests = crate::requests::Requests<Request>;
