//! What can be seen of a replica from outside: for people, and for scripts.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// A replica as it was a moment ago.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// Its name, as `g1.2`.
    pub replica: String,
    /// Its group.
    pub group: String,
    /// Which start of it this is.
    pub incarnation: u16,
    /// What it is doing.
    pub state: ReplicaState,
    /// The replica to which it last gave its log. Nothing if it has given it to none.
    pub leader: Option<String>,
    /// The timestamp of that one: its round.
    pub round: u64,
    /// The timestamp as one number: of two leaders, the later has the higher one.
    pub timestamp: u64,
    /// Entries of its log.
    pub tail: u64,
    /// How many of them are decided.
    pub decided: u64,
    /// How many of them were handed over, or passed by because they are for other groups.
    pub processed: u64,
    /// Messages that its application was handed since its start.
    pub delivered: u64,
    /// Messages that its application was handed in the last second or so, a second.
    pub delivered_per_second: u64,
    /// Clients that are connected to it.
    pub clients: u16,
    /// Replicas of its group, its parent and its children that are connected to it.
    pub replicas: u16,
    /// Leaders to which it gave its log.
    pub granted: u64,
    /// How often it began to ask for the others' logs.
    pub campaigns: u64,
    /// Since its start, in ms.
    pub uptime_ms: u64,
    /// Why it ended, if it has.
    pub stopped: Option<String>,
    /// What became of its files in shared memory, if somebody removed them.
    pub notice: Option<String>,
}

/// What a replica is doing. In JSON it is the name in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReplicaState {
    /// It has made no step yet.
    #[default]
    Starting,
    /// It leads its group.
    Leading,
    /// It follows a leader, or waits for one.
    Following,
    /// It has come back, and is without a vote yet.
    Returning,
    /// It has ended.
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

    /// Whether it counts in its group's majority.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::Leading | Self::Following)
    }
}

/// The status, as it was last shown.
#[derive(Clone, Debug, Default)]
pub(super) struct StatusBoard(Arc<Mutex<Option<ReplicaStatus>>>);

impl StatusBoard {
    /// Shows how it is.
    pub(super) fn show(&self, status: ReplicaStatus) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    /// How it is. Nothing before the replica is in its group.
    pub(super) fn status(&self) -> Option<ReplicaStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
