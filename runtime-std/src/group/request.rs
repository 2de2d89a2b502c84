//! What other threads ask of the one that drives a member.

use std::sync::mpsc::{Receiver, Sender, channel};

use tramontane_control::Session;
use tramontane_core::ids::{NodeId, SubgroupId};

use super::peer_connector::Call;
use super::queue::{QueueId, Sink};
use tramontane_core::fabric::LocalBell;

/// One request.
pub(super) enum Request {
    /// A node that is to be a member, or is one, is connected.
    Connected { node: NodeId, session: Session, call: Call },
    /// A node wants the state of these subgroups, and all that is delivered after it.
    Supply { node: NodeId, subgroups: Vec<SubgroupId>, sink: Sink },
    /// A node that takes over state has caught up: it is to be admitted. Each of its subgroups
    /// comes from that member.
    Wish { node: NodeId, sources: Vec<(SubgroupId, NodeId)> },
    /// A node that takes over state is gone; or, if it was admitted already, before it reported
    /// that it is up. `led` says whether this member leads its join.
    Gone { node: NodeId, led: bool, queue: QueueId },
    /// Leave the group.
    Leave,
}

/// Where requests go in. Each one wakes the thread that takes them.
#[derive(Clone)]
pub(super) struct Requests {
    sender: Sender<Request>,
    bell: crate::fabric::AnyBell,
}

impl Requests {
    /// Both ends.
    pub(super) fn new(bell: crate::fabric::AnyBell) -> (Self, Receiver<Request>) {
        let (sender, receiver) = channel();
        (Self { sender, bell }, receiver)
    }

    /// Asks. False if nobody takes requests any more.
    pub(super) fn ask(&self, request: Request) -> bool {
        let is_asked = self.sender.send(request).is_ok();
        self.bell.ring_if_asleep();
        is_asked
    }
}
