//! The status of a replica: for people, and for scripts.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// The recent status of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// Its name, as `g1.2`.
    pub replica: String,
    /// Its group.
    pub group: String,
    /// Its incarnation.
    pub incarnation: u16,
    /// The state of the replica.
    pub state: ReplicaState,
    /// The replica to which it last gave its log; `None` if it has given it to none.
    pub leader: Option<String>,
    /// The round of that replica's timestamp.
    pub round: u64,
    /// The timestamp as one number: of two leaders, the later has the higher one.
    pub timestamp: u64,
    /// Entries of its log.
    pub tail: u64,
    /// Entries that are decided.
    pub decided: u64,
    /// Entries that were delivered, or passed over because they are for other groups.
    pub processed: u64,
    /// Messages delivered to its application since its start.
    pub delivered: u64,
    /// Messages delivered per second, over about the last second.
    pub delivered_per_second: u64,
    /// Clients that are connected to it.
    pub clients: u16,
    /// Replicas of its group, its parent and its children that are connected to it.
    pub replicas: u16,
    /// The number of leaders to which it gave its log.
    pub granted: u64,
    /// The number of times that it began to ask for the others' logs.
    pub campaigns: u64,
    /// The time since its start, in ms.
    pub uptime_ms: u64,
    /// Why it ended, if it has.
    pub stopped: Option<String>,
    /// A notice about its files in shared memory, if they were removed.
    pub notice: Option<String>,
}

/// The state of a replica. In JSON it is the name in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReplicaState {
    /// The replica has not made a step yet.
    #[default]
    Starting,
    /// The replica leads its group.
    Leading,
    /// The replica follows a leader, or waits for one.
    Following,
    /// The replica has returned, and has no vote yet.
    Returning,
    /// The replica has ended.
    Halted,
}

impl ReplicaState {
    /// Returns the name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Leading => "leading",
            Self::Following => "following",
            Self::Returning => "returning",
            Self::Halted => "halted",
        }
    }

    /// Returns whether it counts in its group's majority.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::Leading | Self::Following)
    }
}

/// The status, as last published.
#[derive(Clone, Debug, Default)]
pub(super) struct StatusBoard(Arc<Mutex<Option<ReplicaStatus>>>);

impl StatusBoard {
    /// Publishes the status.
    pub(super) fn show(&self, status: ReplicaStatus) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    /// Returns the status; `None` before the replica is in its group.
    pub(super) fn status(&self) -> Option<ReplicaStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
