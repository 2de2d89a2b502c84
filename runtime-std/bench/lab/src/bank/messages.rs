//! The messages between the demo's parent and its processes.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_local::crew::Role;
use tramontane_runtime::shards::Description;

use super::accounts::Totals;

/// A process of the demo.
#[derive(Debug)]
pub(super) enum ShardsMember {}

impl Role for ShardsMember {
    fn command() -> Vec<String> {
        vec!["bank-member".into()]
    }
    type Task = BankTask;
    type Order = BankOrder;
    type Report = BankReport;
}

/// The task of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BankTask {
    pub(super) overlay: Description,
    /// The file for the process's history.
    pub(super) history: PathBuf,
    pub(super) part: BankPart,
    /// Time limit for meeting the others.
    pub(super) join_timeout: Duration,
}

/// The role of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BankPart {
    /// The replica with this name, in its start number `inc`, counted from 1.
    Replica { name: String, inc: u32 },
    /// A client that makes at most `rate` transfers per second, drawn from a seed.
    Client { seed: u64, rate: f64 },
}

/// An order from the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BankOrder {
    /// For a client: begin transferring.
    Go,
    /// For a client: end once all transfers have been answered.
    Stop,
    /// For a replica: report its state.
    Tell,
}

/// A report from a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BankReport {
    /// A replica has joined its group, or a client is connected to all groups.
    Joined,
    /// A replica counts in quorums, perhaps again.
    Votes,
    /// A replica leads.
    Leads { term: u64 },
    /// The state of a replica.
    Holds(Totals),
    /// The transfers that a client has sent, and their durations.
    Done { name: String, inc: u32, sent: Vec<ClientTransfer> },
    /// The process cannot continue.
    Failed {
        /// The exit status.
        status: u8,
        /// The cause and the remedy.
        text: String,
    },
}

/// A transfer by a client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ClientTransfer {
    pub(super) at_ns: u64,
    /// `None` if it was not answered.
    pub(super) answered_ns: Option<u64>,
    /// The destination groups, one bit each.
    pub(super) destinations: u64,
}
