//! The status of a member, for people, scripts and metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_core::ids::NodeId;

use crate::fabric::AnyFabric;
use crate::group::description::view::View;
use crate::rdma::Figures;

/// The latest status of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// The group's name.
    pub group: String,
    /// This node.
    pub node: u32,
    /// The view that the member has installed.
    pub view: u64,
    /// The view's members, in rank order.
    pub members: Vec<u32>,
    /// The nodes that the member suspects.
    pub suspected: Vec<u32>,
    /// The member's state.
    pub state: MemberState,
    /// The nodes that are receiving state from the member.
    pub joining: Vec<u32>,
    /// Other facts that an operator should know, each as a sentence: removed files in shared
    /// memory, and nodes that wait to be admitted, with the reason.
    pub notices: Vec<String>,
    /// The subgroups that the member belongs to.
    pub subgroups: Vec<SubgroupStatus>,
    /// The time since the member's start, in ms.
    pub uptime_ms: u64,
    /// Number of views installed since the member's start.
    pub views_installed: u64,
    /// Number of messages delivered since the member's start.
    pub delivered: u64,
    /// Number of messages sent since the member's start. Messages resent in a later view count
    /// again.
    pub sent: u64,
    /// Number of the member's null rounds.
    pub nulls: u64,
    /// Number of writes posted by the member, excluding heartbeats.
    pub writes: u64,
    /// Number of heartbeats posted by the member.
    pub heartbeats: u64,
    /// Number of messages delivered per second, averaged over about the last second.
    pub delivered_per_second: u64,
    /// Members that hold others back, as seen by this node (EXT-2).
    pub slow: Vec<SlowMember>,
    /// External clients connected to the member.
    pub clients: Vec<ClientStatus>,
    /// Number of clients that the member has disconnected since its start.
    pub clients_cut: u64,
    /// The most recently disconnected clients, the latest first.
    pub cut: Vec<CutClient>,
}

/// The state of a member. In JSON, this is the name in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MemberState {
    /// The member delivers messages, and no view change is in progress.
    #[default]
    Steady,
    /// A view change is in progress.
    Changing,
    /// The member has been asked to leave, and waits for the view that excludes it.
    Leaving,
    /// The member has left.
    Left,
    /// The member has been excluded from the group, or has failed.
    Halted,
}

impl MemberState {
    /// All states, in the order in which a member passes through them.
    pub const ALL: [Self; 5] =
        [Self::Steady, Self::Changing, Self::Leaving, Self::Left, Self::Halted];

    /// Returns the name, as used in JSON.
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
    /// The subgroup in which the member holds others back.
    pub subgroup: String,
    /// The members that are ahead of this one, and whose messages wait for it to catch up.
    pub holds: Vec<u32>,
    /// The time since the member became slow, in ms.
    pub lasts_ms: u64,
}

/// The status of an external client at its member (EXT-1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// The client's name, or its id if it has no name.
    pub name: String,
    /// `publisher` or `subscriber`.
    pub kind: String,
    /// Its subgroup.
    pub subgroup: String,
    /// For a publisher, the number of its next message to be delivered. For a subscriber, the
    /// sequence position that it receives next.
    pub next: u64,
    /// Number of messages that have not been sent to the subscriber yet.
    pub behind: u64,
    /// Number of bytes queued for the client.
    pub unsent_bytes: u64,
    /// The time for which the client has received none of the queued data, in ms.
    pub stalled_ms: u64,
}

/// A client that the member has disconnected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutClient {
    /// The client's name.
    pub name: String,
    /// The reason.
    pub why: String,
}

impl GroupStatus {
    /// Returns whether this member has left the group or failed.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, MemberState::Left | MemberState::Halted)
    }

    /// Returns whether the member is about to leave.
    pub(crate) fn is_leaving(&self) -> bool {
        self.state == MemberState::Leaving
    }
}

/// The status of one subgroup in the current view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubgroupStatus {
    /// Its name.
    pub name: String,
    /// Its members.
    pub members: Vec<u32>,
    /// The members that send in this view.
    pub senders: Vec<u32>,
    /// Number of sequence positions received in this view.
    pub received: u64,
    /// Number of sequence positions delivered in this view.
    pub delivered: u64,
    /// Whether the subgroup has lost its state, and accepts no further messages.
    pub closed: bool,
    /// The durable counts, if the subgroup is logged and this node belongs to it.
    // This field is never skipped, because the encoding between processes does not allow missing
    // fields.
    #[serde(default)]
    pub durable: Option<DurableStatus>,
}

/// The numbers of durable messages of a logged subgroup since the group began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurableStatus {
    /// Number of messages that this member has delivered, or received as part of a state.
    pub delivered: u64,
    /// Number of messages durable at this member.
    pub here: u64,
    /// Number of messages durable at a majority of the subgroup's members.
    pub majority: u64,
    /// Number of messages durable at all of the subgroup's members.
    pub all: u64,
    /// The number of writes to this member's log, each with one sync.
    pub commits: u64,
}

/// The last published status, which any thread can read. It is empty until this process is a
/// member; the last status remains after the membership has ended.
#[derive(Clone, Debug, Default)]
pub struct SharedStatus {
    hung: Arc<Mutex<Option<Hung>>>,
    clients: Arc<Mutex<ClientsShown>>,
    rdma: Arc<Mutex<Option<Figures>>>,
    unreached: Arc<Mutex<Unreached>>,
}

/// Nodes that want to join but do not reach these members, with the time when each reported this.
type Unreached = BTreeMap<NodeId, (Instant, Vec<NodeId>)>;

/// The time for which a waiting node is listed. It reports again before that time is over.
const WAIT_SHOWN: Duration = Duration::from_secs(30);

type Hung = (GroupStatus, Arc<View>);

/// The part of a status that the thread that serves clients publishes.
#[derive(Debug, Default)]
struct ClientsShown {
    clients: Vec<ClientStatus>,
    clients_cut: u64,
    cut: Vec<CutClient>,
}

/// Returns a notice for each node that does not reach some members, as long as the node keeps
/// reporting this and is not a member itself.
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

    /// Changes the status in place if it belongs to this view. Returns false if it belongs to
    /// another view, or does not exist.
    pub(crate) fn change(&self, view: &Arc<View>, write: impl FnOnce(&mut GroupStatus)) -> bool {
        let mut shown = self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        let same = shown.as_mut().filter(|(_, of)| Arc::ptr_eq(of, view));
        same.map(|(status, _)| write(status)).is_some()
    }

    /// Returns the member's status, which is at most one heartbeat interval old while the member
    /// runs.
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

    /// Returns the fabric's figures, which are at most one heartbeat interval old. Returns `None`
    /// for a member that does not use RDMA.
    #[must_use]
    pub fn rdma(&self) -> Option<Figures> {
        self.rdma.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Publishes the fabric's figures.
    pub(crate) fn put_fabric(&self, fabric: &AnyFabric) {
        fabric.write_figures(&mut self.rdma.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Publishes the fact that a node cannot be admitted yet because it does not reach these
    /// members.
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
