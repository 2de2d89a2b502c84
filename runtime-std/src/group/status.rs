//! What can be seen of a member from outside: for people, for scripts, for metrics.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::view::View;

/// A member as it was a moment ago.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// The group's name.
    pub group: String,
    /// This node.
    pub node: u32,
    /// The view that it has installed.
    pub view: u64,
    /// The view's members, in rank order.
    pub members: Vec<u32>,
    /// The nodes that it suspects.
    pub suspected: Vec<u32>,
    /// What it is doing: `steady`, `changing`, `leaving`, `left` or `halted`.
    pub state: String,
    /// Nodes that are taking over state from it.
    pub joining: Vec<u32>,
    /// The subgroups that it belongs to.
    pub subgroups: Vec<SubgroupStatus>,
    /// Since its start, in ms.
    pub uptime_ms: u64,
    /// Views that it has installed since.
    pub views_installed: u64,
    /// Messages that it delivered since.
    pub delivered: u64,
    /// Messages that it sent since; those that were sent again in a next view count again.
    pub sent: u64,
    /// Its rounds that went by without a message.
    pub nulls: u64,
    /// Writes that it posted, heartbeats left out.
    pub writes: u64,
    /// Heartbeats that it posted.
    pub heartbeats: u64,
    /// Messages that were delivered in the last second or so, a second.
    pub delivered_per_second: u64,
}

impl GroupStatus {
    /// Whether its part in the group is over.
    pub(super) fn is_over(&self) -> bool {
        self.state == "left" || self.state == "halted"
    }

    /// Whether it is about to leave.
    pub(super) fn is_leaving(&self) -> bool {
        self.state == "leaving"
    }
}

/// One subgroup in the present view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubgroupStatus {
    /// Its name.
    pub name: String,
    /// Its members.
    pub members: Vec<u32>,
    /// Places received in this view.
    pub received: u64,
    /// Places delivered in this view.
    pub delivered: u64,
    /// It lost its state, and takes no more messages.
    pub closed: bool,
    /// What is durable of it, if it is logged and this node belongs to it.
    // Always there: the encoding between processes knows no fields that are left out.
    pub durable: Option<DurableStatus>,
}

/// How many messages of a logged subgroup are durable, since the group began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurableStatus {
    /// With this member.
    pub here: u64,
    /// With a majority of the subgroup's members.
    pub majority: u64,
    /// With all of them.
    pub all: u64,
    /// How often this member wrote to its log, each time with one sync.
    pub commits: u64,
}

/// Where the last status hangs, for any thread to look at. Nothing until this process is a member;
/// the last one stays when it is none any more.
#[derive(Clone, Debug, Default)]
pub struct SharedStatus(Arc<Mutex<Option<Hung>>>);

type Hung = (GroupStatus, Arc<View>);

impl SharedStatus {
    pub(super) fn put(&self, status: GroupStatus, view: &Arc<View>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((status, Arc::clone(view)));
    }

    /// Changes the status in place, if it is of this view. False if it is of another, or there is
    /// none.
    pub(super) fn change(&self, view: &Arc<View>, write: impl FnOnce(&mut GroupStatus)) -> bool {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = shown.as_mut().filter(|(_, of)| Arc::ptr_eq(of, view));
        same.map(|(status, _)| write(status)).is_some()
    }

    /// How things stand, as of a heartbeat ago at most while the member runs.
    #[must_use]
    pub fn status(&self) -> Option<GroupStatus> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(|(status, _)| status.clone())
    }

    pub(super) fn view(&self) -> Option<Arc<View>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(|(_, view)| Arc::clone(view))
    }
}
