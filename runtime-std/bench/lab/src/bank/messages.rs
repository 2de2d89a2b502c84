//! What the demo's parent and its processes send to each other.

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
    type Task = Task;
    type Order = BankOrder;
    type Report = BankReport;
}

/// What a process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) overlay: Description,
    /// Where it writes its history.
    pub(super) history: PathBuf,
    pub(super) part: BankPart,
    /// How long to wait for the others.
    pub(super) join_timeout: Duration,
}

/// What it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BankPart {
    /// A replica of that name, which is started for the so-manieth time, from 1.
    Replica { name: String, inc: u32 },
    /// A client that makes so many transfers a second at most, drawn from a seed.
    Client { seed: u64, rate: f64 },
}

/// What the parent asks of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BankOrder {
    /// Of a client: begin.
    Go,
    /// Of a client: end, once all is answered.
    Stop,
    /// Of a replica: tell what it holds.
    Tell,
}

/// What a process reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BankReport {
    /// A replica is in its group; a client has met all groups.
    Joined,
    /// A replica counts in quorums, or does so again.
    Votes,
    /// A replica leads.
    Leads { term: u64 },
    /// What a replica holds.
    Holds(Totals),
    /// What a client has sent, and how long it took.
    Done { name: String, inc: u32, sent: Vec<Sent> },
    /// It cannot go on.
    Failed {
        /// The exit status.
        status: u8,
        /// What is wrong and what to do.
        text: String,
    },
}

/// A transfer of a client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) at_ns: u64,
    /// Nothing if it was not answered.
    pub(super) answered_ns: Option<u64>,
    /// The groups that it was for, a bit each.
    pub(super) destinations: u64,
}
