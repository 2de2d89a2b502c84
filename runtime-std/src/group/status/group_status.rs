//! The status of a member: for people, for scripts, for metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_core::ids::NodeId;

use crate::fabric::AnyFabric;
use crate::group::description::view::View;
use crate::rdma::Figures;

/// The recent status of a member.
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
    /// The state of the member.
    pub state: MemberState,
    /// Nodes that are taking over state from it.
    pub joining: Vec<u32>,
    /// Other things that an operator should know, each as a sentence: removed files in shared
    /// memory, and nodes that wait to be admitted, with the reason.
    pub notices: Vec<String>,
    /// The subgroups that it belongs to.
    pub subgroups: Vec<SubgroupStatus>,
    /// The time since its start, in ms.
    pub uptime_ms: u64,
    /// Views that it has installed since its start.
    pub views_installed: u64,
    /// Messages that it delivered since its start.
    pub delivered: u64,
    /// Messages that it sent since its start; messages resent in a later view count again.
    pub sent: u64,
    /// Its null rounds.
    pub nulls: u64,
    /// Writes that it posted, without heartbeats.
    pub writes: u64,
    /// Heartbeats that it posted.
    pub heartbeats: u64,
    /// Messages delivered per second, over about the last second.
    pub delivered_per_second: u64,
    /// Members that hold others back, as this node sees it (EXT-2).
    pub slow: Vec<SlowMember>,
    /// External clients connected to it.
    pub clients: Vec<ClientStatus>,
    /// The number of clients that it cut off since its start.
    pub clients_cut: u64,
    /// The clients cut off last, the latest first.
    pub cut: Vec<CutClient>,
}

/// The state of a member. In JSON it is the name in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MemberState {
    /// The member delivers, and no view change is in progress.
    #[default]
    Steady,
    /// A view change is in progress.
    Changing,
    /// The member was asked to leave, and waits for the view without it.
    Leaving,
    /// The member left.
    Left,
    /// The member is out of the group, or failed.
    Halted,
}

impl MemberState {
    /// All states, in the order in which a member passes through them.
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
    /// The members that are ahead of it: their messages wait for it.
    pub holds: Vec<u32>,
    /// The time since it became slow, in ms.
    pub lasts_ms: u64,
}

/// An external client, at its member (EXT-1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// The client's name, or its id if it has no name.
    pub name: String,
    /// `publisher` or `subscriber`.
    pub kind: String,
    /// Its subgroup.
    pub subgroup: String,
    /// The number of the publisher's next message to be delivered, or the sequence position that
    /// the subscriber receives next.
    pub next: u64,
    /// Messages that have not been sent to the subscriber yet.
    pub behind: u64,
    /// Bytes queued for it.
    pub unsent_bytes: u64,
    /// The time for which it has received none of the queued data, in ms.
    pub stalled_ms: u64,
}

/// A client that was cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutClient {
    /// The client's name.
    pub name: String,
    /// The reason.
    pub why: String,
}

impl GroupStatus {
    /// Returns whether its part in the group is over.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, MemberState::Left | MemberState::Halted)
    }

    /// Returns whether it is about to leave.
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
    /// Places in the delivery order received in this view.
    pub received: u64,
    /// Places in the delivery order delivered in this view.
    pub delivered: u64,
    /// Whether it lost its state, and accepts no further messages.
    pub closed: bool,
    /// The durable counts, if it is logged and this node belongs to it.
    // Never skipped: the encoding between processes does not allow missing fields.
    #[serde(default)]
    pub durable: Option<DurableStatus>,
}

/// The number of durable messages of a logged subgroup, since the group began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurableStatus {
    /// Messages that this member delivered or took over.
    pub delivered: u64,
    /// Messages durable at this member.
    pub here: u64,
    /// Messages durable at a majority of the subgroup's members.
    pub majority: u64,
    /// Messages durable at all of the subgroup's members.
    pub all: u64,
    /// The number of writes to this member's log, each with one sync.
    pub commits: u64,
}

/// The last published status, readable by any thread. Empty until this process is a member; the
/// last status remains after its membership has ended.
#[derive(Clone, Debug, Default)]
pub struct SharedStatus {
    hung: Arc<Mutex<Option<Hung>>>,
    clients: Arc<Mutex<ClientsShown>>,
    rdma: Arc<Mutex<Option<Figures>>>,
    unreached: Arc<Mutex<Unreached>>,
}

/// Nodes that want to join but do not reach these members, and when they reported it.
type Unreached = BTreeMap<NodeId, (Instant, Vec<NodeId>)>;

/// How long a waiting node is shown; it reports again before.
const WAIT_SHOWN: Duration = Duration::from_secs(30);

type Hung = (GroupStatus, Arc<View>);

/// The part of the status published by the thread that serves clients.
#[derive(Debug, Default)]
struct ClientsShown {
    clients: Vec<ClientStatus>,
    clients_cut: u64,
    cut: Vec<CutClient>,
}

/// Returns a notice for each node that does not reach members, while it reports so and is not a
/// member itself.
fn waits_of(unreached: &Unreached, members: &[u32]) -> impl Iterator<Item = String> {
    let waits = unreached
        .iter()
        .filter(|(node, (said, _))| said.elapsed() < WAIT_SHOWN && !members.contains(&node.get()));
    waits.flat_map(|(node, (_, missing))| {
        let missing = missing.iter().filter(|member| members.contains(&member.get()));
        missing.map(move |member| format!("node {node} is waiting: node {member} cannot reach it"))
    })
}

impl SharedStatus {
    pub(crate) fn put(&self, status: GroupStatus, view: &Arc<View>) {
        *self.hung.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((status, Arc::clone(view)));
    }

    /// Changes the status in place, if it belongs to this view. Returns false if it belongs to
    /// another view, or there is none.
    pub(crate) fn change(&self, view: &Arc<View>, write: impl FnOnce(&mut GroupStatus)) -> bool {
        let mut shown = self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        let same = shown.as_mut().filter(|(_, of)| Arc::ptr_eq(of, view));
        same.map(|(status, _)| write(status)).is_some()
    }

    /// Returns the member's status, which is at most a heartbeat old while the member runs.
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

    /// Returns the fabric's figures, at most a heartbeat old; `None` for a member that is not over
    /// RDMA.
    #[must_use]
    pub fn rdma(&self) -> Option<Figures> {
        self.rdma.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Publishes the fabric's figures.
    pub(crate) fn put_fabric(&self, fabric: &AnyFabric) {
        fabric.write_figures(&mut self.rdma.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Publishes that a node cannot be admitted yet, because it does not reach these members.
    pub(crate) fn put_unreached(&self, node: NodeId, members: Vec<NodeId>) {
        let mut unreached = self.unreached.lock().unwrap_or_else(PoisonError::into_inner);
        unreached.insert(node, (Instant::now(), members));
    }

    /// Publishes the status of clients.
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
    fn member_states_serialize_as_their_names() {
        for state in MemberState::ALL {
            let json = serde_json::to_string(&state).expect("a name");
            assert_eq!(json, format!("\"{}\"", state.name()));
        }
    }
}
