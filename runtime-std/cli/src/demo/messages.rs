//! What the demo's parent and its members send to each other.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::input::Shape;
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
    type Task = Task;
    type Order = DemoOrder;
    type Report = DemoReport;
}

/// What a member is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// Its node id, which is its rank too.
    pub(super) node: u32,
    /// All members' group.
    pub(super) group: Description,
    /// Where they meet.
    pub(super) place: LocalPlace,
    pub(super) input: Shape,
    /// Records to be delivered in all, repetitions included.
    pub(super) total: u64,
    /// How long to wait for the others.
    pub(super) join_timeout: Duration,
}

/// What the parent asks of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DemoOrder {
    /// All members are there: send. To end, the parent releases the members.
    Send,
}

/// What a member reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DemoReport {
    /// All members are there.
    Joined,
    /// It is alive, and has delivered this number of messages so far.
    Delivered(u64),
    /// It has delivered everything.
    Done(Box<Deliveries>),
    /// It cannot go on.
    Failed {
        /// The exit status.
        status: u8,
        /// What is wrong and what to do.
        text: String,
    },
}

/// What a member sent and delivered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Deliveries {
    /// Own messages, nulls left out.
    pub(super) sent: u64,
    /// Messages that were delivered here.
    pub(super) delivered: u64,
    /// Bytes of them.
    pub(super) bytes: u64,
    /// Rounds that this member used up without a message.
    pub(super) nulls: u64,
    /// Of the delivered sequence, as hexadecimal digits.
    pub(super) digest: String,
    /// The first delivered message that is not the record that its sender was to send then.
    pub(super) wrong: Option<Wrong>,
    /// Before the first message was committed, on the machine's clock.
    pub(super) start_ns: u64,
    /// At the last delivery.
    pub(super) end_ns: u64,
    /// From commit to own delivery.
    pub(super) latencies: Vec<LatencyCount>,
    /// The largest of them, exactly.
    pub(super) latency_max_ns: u64,
}

/// How often a latency was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LatencyCount {
    pub(super) latency_ns: u64,
    pub(super) count: u64,
}

/// A message that differs from what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wrong {
    /// Its place in the order.
    pub(super) place: u64,
    /// The id of its sender.
    pub(super) sender: u32,
}
