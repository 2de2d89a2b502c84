//! What can be seen of a member from outside: for people, for scripts, for metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_core::ids::NodeId;

use crate::fabric::AnyFabric;
use crate::group::description::view::View;
use crate::rdma::Figures;

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
    /// What it is doing.
    pub state: MemberState,
    /// Nodes that are taking over state from it.
    pub joining: Vec<u32>,
    /// What an operator should know beside that, each as a sentence: files in shared memory that
    /// somebody removed, nodes that wait to be let in, and why.
    pub notices: Vec<String>,
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
    /// Members that hold others back, as this node sees it (EXT-2).
    pub slow: Vec<SlowMember>,
    /// Clients from outside that are connected to it.
    pub clients: Vec<ClientStatus>,
    /// How many clients it has cut since.
    pub clients_cut: u64,
    /// The last ones of these, the latest first.
    pub cut: Vec<CutClient>,
}

/// What a member is doing. In JSON it is the name in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MemberState {
    /// It delivers, and no change of the view is in progress.
    #[default]
    Steady,
    /// A change of the view is in progress.
    Changing,
    /// It was asked to leave, and waits for the view without it.
    Leaving,
    /// It left.
    Left,
    /// It is out of the group, or failed.
    Halted,
}

impl MemberState {
    /// All states, in the order of a member's life.
    pub const ALL: [Self; 5] =
        [Self::Steady, Self::Changing, Self::Leaving, Self::Left, Self::Halted];

    /// Returns the name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Changing => "changing",
            Self::Leaving => "leaving",
            Self::Left => "left",
            Self::Halted => "halted",
        }
    }
}

/// A member that holds others back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowMember {
    /// The member.
    pub node: u32,
    /// The subgroup in which it does.
    pub subgroup: String,
    /// The members that are ahead of it: what they send waits for it.
    pub holds: Vec<u32>,
    /// For how long, in ms.
    pub lasts_ms: u64,
}

/// A client from outside, at the member that it is at (EXT-1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// What it calls itself; its id if it has no name.
    pub name: String,
    /// `publisher` or `subscriber`.
    pub kind: String,
    /// Its subgroup.
    pub subgroup: String,
    /// The number of its next message that is to be delivered; for a subscriber, the place that it
    /// gets next.
    pub next: u64,
    /// Messages that a subscriber has not been sent yet.
    pub behind: u64,
    /// Bytes that wait for it.
    pub unsent_bytes: u64,
    /// For how long it has taken nothing of what waits, in ms.
    pub stalled_ms: u64,
}

/// A client that was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutClient {
    /// What it calls itself.
    pub name: String,
    /// Why.
    pub why: String,
}

impl GroupStatus {
    /// Whether its part in the group is over.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, MemberState::Left | MemberState::Halted)
    }

    /// Whether it is about to leave.
    pub(crate) fn is_leaving(&self) -> bool {
        self.state == MemberState::Leaving
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
    #[serde(default)]
    pub durable: Option<DurableStatus>,
}

/// How many messages of a logged subgroup are durable, since the group began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurableStatus {
    /// Messages that this member delivered, and those that it took over.
    pub delivered: u64,
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
pub struct SharedStatus {
    hung: Arc<Mutex<Option<Hung>>>,
    clients: Arc<Mutex<ClientsShown>>,
    rdma: Arc<Mutex<Option<Figures>>>,
    unreached: Arc<Mutex<Unreached>>,
}

/// Nodes that want to join and do not reach these members, and when they said so.
type Unreached = BTreeMap<NodeId, (Instant, Vec<NodeId>)>;

/// For how long it is shown that a node waits: it says so again before.
const WAIT_SHOWN: Duration = Duration::from_secs(30);

type Hung = (GroupStatus, Arc<View>);

/// What the thread that serves clients shows.
#[derive(Debug, Default)]
struct ClientsShown {
    clients: Vec<ClientStatus>,
    clients_cut: u64,
    cut: Vec<CutClient>,
}

/// Each node that does not reach members, while it says so and is none itself.
fn waits_of(unreached: &Unreached, members: &[u32]) -> impl Iterator<Item = String> {
    let waits = unreached
        .iter()
        .filter(|(node, (said, _))| said.elapsed() < WAIT_SHOWN && !members.contains(&node.get()));
    waits.flat_map(|(node, (_, missing))| {
        let missing = missing.iter().filter(|member| members.contains(&member.get()));
        missing.map(move |member| format!("node {node} waits: node {member} does not reach it"))
    })
}

impl SharedStatus {
    pub(crate) fn put(&self, status: GroupStatus, view: &Arc<View>) {
        *self.hung.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((status, Arc::clone(view)));
    }

    /// Changes the status in place, if it is of this view. False if it is of another, or there is
    /// none.
    pub(crate) fn change(&self, view: &Arc<View>, write: impl FnOnce(&mut GroupStatus)) -> bool {
        let mut shown = self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        let same = shown.as_mut().filter(|(_, of)| Arc::ptr_eq(of, view));
        same.map(|(status, _)| write(status)).is_some()
    }

    /// How things stand, as of a heartbeat ago at most while the member runs.
    #[must_use]
    pub fn status(&self) -> Option<GroupStatus> {
        let shown = self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        let status = shown.as_ref().map(|(status, _)| status.clone());
        drop(shown);
        let unreached = self.unreached.lock().unwrap_or_else(PoisonError::into_inner);
        let ClientsShown { clients, clients_cut, cut } =
            &*self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        status.map(|mut status| GroupStatus {
            notices: {
                let waits = waits_of(&unreached, &status.members);
                let mut notices = std::mem::take(&mut status.notices);
                notices.extend(waits);
                notices
            },
            clients: clients.clone(),
            clients_cut: *clients_cut,
            cut: cut.clone(),
            ..status
        })
    }

    /// What the fabric did, as of a heartbeat ago at most; none of a member that is not over RDMA.
    #[must_use]
    pub fn rdma(&self) -> Option<Figures> {
        self.rdma.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows what the fabric did.
    pub(crate) fn put_fabric(&self, fabric: &AnyFabric) {
        fabric.write_figures(&mut self.rdma.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Shows that a node cannot be let in yet: it does not reach these members.
    pub(crate) fn put_unreached(&self, node: NodeId, members: Vec<NodeId>) {
        let mut unreached = self.unreached.lock().unwrap_or_else(PoisonError::into_inner);
        unreached.insert(node, (Instant::now(), members));
    }

    /// Shows how clients are.
    pub(crate) fn put_clients(
        &self,
        clients: Vec<ClientStatus>,
        clients_cut: u64,
        cut: Vec<CutClient>,
    ) {
        *self.clients.lock().unwrap_or_else(PoisonError::into_inner) =
            ClientsShown { clients, clients_cut, cut };
    }

    pub(crate) fn view(&self) -> Option<Arc<View>> {
        self.hung
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(|(_, view)| Arc::clone(view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_their_names_in_json() {
        for state in MemberState::ALL {
            let json = serde_json::to_string(&state).expect("a name");
            assert_eq!(json, format!("\"{}\"", state.name()));
        }
    }
}
