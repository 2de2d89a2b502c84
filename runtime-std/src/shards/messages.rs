//! The control-plane messages between processes of an overlay.
//!
//! | purpose of a session | who asks | what |
//! |---|---|---|
//! | `Peer` | a process that wants to share a two-member view | [`PeerRequest`] |
//! | `Join` | a starting replica, asking another one of its group | [`JoinRequest`] |
//! | `Ask` | operators, and clients that want a place | [`AskRequest`] |

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::founding_stage::FoundingStage;
use super::lives::{Life, Seat};
use super::shown_disks::DiskAtStart;
use super::status::ReplicaStatus;

/// Time limit for one message.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum length of a request, in bytes.
pub(super) const REQUEST_MAX: u64 = 256;

/// The maximum length of an answer in bytes, excluding an application's state.
pub(super) const REPLY_MAX: u64 = 1 << 20;

/// A request of a caller that wants to share a two-member view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PeerRequest {
    /// Proposes a view with this id, which the caller has drawn at random, so that it has never
    /// been used before.
    Meet { view: u64, incarnation: u32, disk: Option<DiskAtStart> },
    /// Confirms that the caller keeps this connection and this view.
    Kept,
    /// Rejects the other end's process, because a later process of its node is known.
    Outdated,
    /// Rejects this process of the other end's node, because its disk lacks something that an
    /// earlier one has shown. The incarnation is the caller's.
    DiskOlder { life: u64, incarnation: u32 },
    /// Asks the other process to call again. Sent by the process that does not call, after it has
    /// given up this view.
    CallAgain { view: u64 },
}

/// The answer to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PeerReply {
    /// Both processes have agreed on the view.
    Met { incarnation: u32, disk: Option<DiskAtStart> },
    /// The process is not in its group yet.
    NotYet,
    /// The caller's process is rejected, because a later one is known.
    Outdated,
    /// The caller's process is rejected, because its disk lacks something that an earlier one has
    /// shown.
    DiskOlder,
}

/// A request from a starting replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum JoinRequest {
    /// Asks for the state of the group, and for an incarnation of at least `at_least`. `stage` is
    /// that of the asking replica.
    Stand { at_least: u16, stage: FoundingStage },
    /// Asks for a voter's state.
    Snapshot,
}

/// The answer to a starting replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum JoinReply {
    Standing(Standing),
    /// The answer to `Snapshot`. A stream follows: this number of cells, and the application's
    /// state.
    Snapshot {
        cells: u64,
    },
    /// The answer to `Snapshot` from a replica that has no snapshot now.
    NoSnapshot,
}

/// The state of a group, as one replica knows it and sends it to another replica of the group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Standing {
    /// The processes that formed the group, by rank. `None` if this replica is in no group yet.
    pub(super) founders: Option<Vec<u64>>,
    pub(super) stage: FoundingStage,
    /// The incarnation that the asking replica may have.
    pub(super) incarnation: u16,
    /// The number of replicas of the group that have returned but do not count yet, including the
    /// asking one.
    pub(super) returning: u16,
    /// The clients known to this replica, with their processes.
    pub(super) clients: Vec<(u16, Life)>,
}

/// A request from an operator, or from a client that wants a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AskRequest {
    Status,
    /// Asks which client places are free.
    Seats,
    /// A place.
    Claim {
        number: u16,
        life: Life,
    },
    /// Returns a place.
    GiveBack {
        number: u16,
        life: u64,
    },
}

/// The answer to an operator or client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AskReply {
    Status(Box<ReplicaStatus>),
    /// The process is not in its group yet, because these replicas are missing.
    NotYet(Vec<String>),
    Seats(Vec<Seat>),
    Claimed(bool),
    GivenBack,
}
