//! The status of a replica, for people and for scripts.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// The latest status of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// The replica's name, such as `g1.2`.
    pub replica: String,
    /// Its group.
    pub group: String,
    /// Its incarnation.
    pub incarnation: u16,
    /// The state of the replica.
    pub state: ReplicaState,
    /// The leader to which the replica last gave its log. `None` if it has given its log to none.
    pub leader: Option<String>,
    /// The round of that leader's timestamp.
    pub round: u64,
    /// The timestamp as a single number. Of two leaders, the later one has the higher number.
    pub timestamp: u64,
    /// Number of entries in the replica's log.
    pub tail: u64,
    /// Number of decided entries.
    pub decided: u64,
    /// Number of entries that have been delivered, or skipped because they are for other groups.
    pub processed: u64,
    /// Number of entries in the replica's log on its disk. `None` if the overlay is not durable.
    pub saved: Option<u64>,
    /// Number of messages delivered to the application since the replica's start.
    pub delivered: u64,
    /// Number of messages delivered per second, averaged over about the last second.
    pub delivered_per_second: u64,
    /// Number of clients connected to the replica.
    pub clients: u16,
    /// Number of connected replicas of the replica's group, its parent and its children.
    pub replicas: u16,
    /// The number of leaders to which the replica has given its log.
    pub granted: u64,
    /// The number of times that the replica has begun to ask the others for their logs.
    pub campaigns: u64,
    /// The time since the replica's start, in ms.
    pub uptime_ms: u64,
    /// The reason why the replica has ended, if it has.
    pub stopped: Option<String>,
    /// A notice about the replica's files: those in shared memory have been removed, or its log on
    /// the disk was damaged.
    pub notice: Option<String>,
}

/// The state of a replica. In JSON, this is the name in lower case.
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
    /// The replica has returned, but has no vote yet.
    Returning,
    /// The replica has ended.
    Halted,
}

impl ReplicaState {
    /// Returns the name, as used in JSON.
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

    /// Returns whether the replica counts in its group's majority.
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

    /// Returns the status, or `None` before the replica is in its group.
    pub(super) fn status(&self) -> Option<ReplicaStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
