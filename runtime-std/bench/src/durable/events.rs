//! The messages between the processes of `bench durable` and their parent.

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
    type Task = DurableTask;
    type Order = DurableOrder;
    type Report = DurableReport;
}

/// The task of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DurableTask {
    /// The description of the group.
    pub(super) description: Description,
    /// The node's id.
    pub(super) node: u32,
    /// Size of a message in bytes.
    pub(super) message_bytes: u32,
    /// The folder of the group.
    pub(super) memory: PathBuf,
    /// The folder of the node's log.
    pub(super) data: PathBuf,
    /// Whether the group is formed for the first time; otherwise it restarts.
    pub(super) is_first_start: bool,
}

/// An order from the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DurableOrder {
    /// Send `messages` messages, and wait until `total` in all are durable everywhere.
    Send { messages: u64, total: u64 },
    /// Report the deliveries.
    Tell,
}

/// A report from a process. Times are on the machine's monotonic clock, in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DurableReport {
    /// The process is a member.
    Joined { at_ns: u64 },
    /// All awaited messages are durable everywhere.
    Sent { from_ns: u64, until_ns: u64, syncs: u64 },
    /// The messages that the process delivered.
    Delivered(MessageDigest),
    /// The process cannot continue.
    Failed(String),
}

/// A sequence of messages: their number, and a digest of all of them, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MessageDigest {
    pub(super) count: u64,
    pub(super) digest: u64,
}
