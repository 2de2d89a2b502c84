//! What the processes of `bench durable` and their parent send to each other.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::experiment::Kind;
use tramontane_local::crew::Role;
use tramontane_runtime::group::Description;

/// A process of `bench durable`.
#[derive(Debug)]
pub(super) enum DurableMember {}

impl Role for DurableMember {
    fn command() -> Vec<String> {
        Kind::DurableMember.command()
    }
    type Task = Task;
    type Order = Order;
    type Report = Report;
}

/// What a process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// The group.
    pub(super) description: Description,
    /// Which node it is.
    pub(super) node: u32,
    /// Bytes of a message.
    pub(super) message_bytes: u32,
    /// Where the group lives.
    pub(super) memory: PathBuf,
    /// Where its log goes.
    pub(super) data: PathBuf,
    /// Whether the group is formed, or restarts.
    pub(super) is_first_start: bool,
}

/// What the parent asks of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// To send so many messages, and to wait until so many in all are durable everywhere.
    Send { messages: u64, total: u64 },
    /// To say what it has delivered.
    Tell,
}

/// What a process reports. Times are of the machine's monotonic clock, in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// It is a member.
    Joined { at_ns: u64 },
    /// All messages that were awaited are durable everywhere.
    Sent { from_ns: u64, until_ns: u64, syncs: u64 },
    /// What it has delivered.
    Delivered(Delivered),
    /// It cannot go on.
    Failed(String),
}

/// A sequence of messages: how many, and a digest of all of them in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Delivered {
    pub(super) count: u64,
    pub(super) digest: u64,
}
