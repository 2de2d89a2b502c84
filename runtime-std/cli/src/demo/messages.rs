//! Messages between the demo's parent and its members.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::input::InputShape;
use tramontane_local::crew::Role;
use tramontane_local::group::LocalPlace;
use tramontane_runtime::group::Description;

/// A member of a demo.
#[derive(Debug)]
pub(super) enum DemoMember {}

impl Role for DemoMember {
    fn command() -> Vec<String> {
        vec!["demo-member".into()]
    }
    type Task = MemberTask;
    type Order = DemoOrder;
    type Report = DemoReport;
}

/// The task of one member.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MemberTask {
    /// Node id of the member, which is also its rank.
    pub(super) node: u32,
    /// The group of all members.
    pub(super) group: Description,
    /// The shared memory in which the members meet.
    pub(super) place: LocalPlace,
    pub(super) input: InputShape,
    /// Number of records to deliver, including repetitions.
    pub(super) total: u64,
    /// Time limit for meeting the other members.
    pub(super) join_timeout: Duration,
}

/// The orders that the parent gives to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DemoOrder {
    /// All members have joined: start sending.
    Send,
}

/// A member's reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DemoReport {
    /// All members have joined.
    Joined,
    /// The member is alive, and has delivered this number of messages so far.
    Delivered(u64),
    /// The member has delivered everything.
    Done(Box<Deliveries>),
    /// The member cannot continue.
    Failed {
        /// Exit status for this failure.
        status: u8,
        /// The failure and its remedy.
        text: String,
    },
}

/// A member's summary of what it sent and delivered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Deliveries {
    /// Number of local messages, excluding nulls.
    pub(super) sent: u64,
    /// Number of messages delivered here.
    pub(super) delivered: u64,
    /// Total size of those messages in bytes.
    pub(super) bytes: u64,
    /// Number of rounds in which this member sent a null.
    pub(super) nulls: u64,
    /// Digest of the delivered sequence, in hexadecimal.
    pub(super) digest: String,
    /// The first delivered message that differs from the record due from its sender.
    pub(super) wrong: Option<Wrong>,
    /// Lower bound on the time at which the first message was committed, on the machine's clock.
    pub(super) start_ns: u64,
    /// Time of the last delivery.
    pub(super) end_ns: u64,
    /// Latencies from commit to local delivery.
    pub(super) latencies: Vec<LatencyCount>,
    /// The largest latency, exact.
    pub(super) latency_max_ns: u64,
}

/// The number of occurrences of one latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LatencyCount {
    pub(super) latency_ns: u64,
    pub(super) count: u64,
}

/// A message that differs from what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wrong {
    /// Position in the group's order.
    pub(super) place: u64,
    /// Id of the sender.
    pub(super) sender: u32,
}
