//! The messages between the processes of `bench views` and their parent, and the names of messages
//! and logs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::experiment::Kind;
use tramontane_local::crew::Role;
use tramontane_runtime::group::Description;

/// Size of a message in bytes.
pub(super) const MESSAGE_BYTES: u32 = 64;

/// A process of `bench views`.
#[derive(Debug)]
pub(super) enum ViewMember {}

impl Role for ViewMember {
    fn command() -> Vec<String> {
        Kind::ViewMember.command()
    }
    type Task = ViewsTask;
    type Order = ViewsOrder;
    type Report = ViewsReport;
}

/// One start of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Incarnation {
    pub(super) node: u32,
    /// Number of earlier starts of the node.
    pub(super) start: u32,
}

/// The task of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ViewsTask {
    /// The description of the group.
    pub(super) description: Description,
    /// The node and its start.
    pub(super) own: Incarnation,
    /// The folder for the node's logs and, over shared memory, for the group.
    pub(super) folder: PathBuf,
    /// Time between two messages, in microseconds.
    pub(super) pace_us: u64,
}

/// A report from a process. Times are on the machine's monotonic clock, in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ViewsReport {
    /// A view was installed.
    View { id: u64, members: Vec<u32> },
    /// The first message of a view was delivered.
    Delivered { view: u64, at_ns: u64 },
    /// A guarantee was violated.
    Broken(String),
    /// The process is about to exit.
    Ended { at_ns: u64, left: bool, why: String },
}

/// An order from the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ViewsOrder {
    /// Leave the group.
    Leave,
}

/// The identity of a message: the sender's node and start, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) sender: Incarnation,
    pub(super) number: u64,
}

/// Size of a name in bytes, in messages, logs and states.
pub(super) const NAME_BYTES: usize = 16;

impl Named {
    pub(super) fn encode(self) -> [u8; NAME_BYTES] {
        let mut bytes = [0; NAME_BYTES];
        bytes[..4].copy_from_slice(&self.sender.node.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.sender.start.to_le_bytes());
        bytes[8..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (node, rest) = bytes.split_first_chunk()?;
        let (start, rest) = rest.split_first_chunk()?;
        let number = rest.first_chunk()?;
        Some(Self {
            sender: Incarnation {
                node: u32::from_le_bytes(*node),
                start: u32::from_le_bytes(*start),
            },
            number: u64::from_le_bytes(*number),
        })
    }
}

/// Returns the name of one member's log in one view.
pub(super) fn log_name(view: u64, of: Incarnation) -> String {
    let Incarnation { node, start } = of;
    format!("view-{view}-{node}-{start}.log")
}

/// Returns the name of the file in which a process stores the number of its messages that have been
/// delivered according to its receipts.
pub(super) fn promises_name(of: Incarnation) -> String {
    let Incarnation { node, start } = of;
    format!("promised-{node}-{start}")
}
