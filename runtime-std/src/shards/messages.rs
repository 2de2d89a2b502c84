//! What processes of an overlay say to each other over the control plane.
//!
//! | purpose of a session | who asks | what |
//! |---|---|---|
//! | `Peer` | whoever is to share a view of two | [`PeerRequest`] |
//! | `Join` | a replica that starts, of another one of its group | [`JoinRequest`] |
//! | `Ask` | operators, and clients that want a place | [`AskRequest`] |

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::lives::{Life, Seat};
use super::status::ReplicaStatus;

/// How long one message may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The longest request.
pub(super) const REQUEST_MAX: u64 = 256;

/// The longest answer, but for an application's state.
pub(super) const REPLY_MAX: u64 = 1 << 20;

/// Of a caller: it wants to share a view of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PeerRequest {
    /// A view with this id, which the caller has drawn at random: nobody has used it before.
    Meet { view: u64, incarnation: u32 },
    /// The connection, and the view, are those of the two from now on.
    Kept,
    /// The other end is not the process that it should be: a later one of its node is known.
    Outdated,
    /// Of one that does not call: it has given up this view, and wants to be called again.
    CallAgain { view: u64 },
}

/// What a caller hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PeerReply {
    /// The view is agreed.
    Met { incarnation: u32 },
    /// The process is not in its group yet.
    NotYet,
    /// The caller is not the process that it should be.
    Outdated,
}

/// Of a replica that starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum JoinRequest {
    /// How things stand, and which incarnation it may have: at least this one.
    Stand { at_least: u16 },
    /// What a voter knows.
    Snapshot,
}

/// What a replica that starts hears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum JoinReply {
    Standing(Standing),
    /// The application's state follows as a stream.
    Snapshot {
        cells: Vec<u64>,
    },
    /// There is no snapshot to be had here now.
    NoSnapshot,
}

/// How things stand at a replica, for another of its group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Standing {
    /// The lives that formed the group, by rank. Nothing if this replica is in no group yet.
    pub(super) founders: Option<Vec<u64>>,
    /// The incarnation that the one who asks may have.
    pub(super) incarnation: u16,
    /// How many replicas of the group have come back and do not count yet, the one who asks
    /// included.
    pub(super) returning: u16,
    /// The clients that are known.
    pub(super) clients: Vec<(u16, Life)>,
}

/// Of an operator, or a client that wants a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AskRequest {
    Status,
    /// Which places of clients are free.
    Seats,
    /// A place.
    Claim {
        number: u16,
        life: Life,
    },
    /// The place is needed no more.
    GiveBack {
        number: u16,
        life: u64,
    },
}

/// What they hear.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AskReply {
    Status(Box<ReplicaStatus>),
    /// The process is not in its group yet; it lacks these replicas.
    NotYet(Vec<String>),
    Seats(Vec<Seat>),
    Claimed(bool),
    GivenBack,
}
