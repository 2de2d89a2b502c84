//! What the demo's parent and its members say to each other: one line of JSON each.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::spool::Shape;
use crate::configuration::GroupConfiguration;
use crate::local::LocalPlace;

/// What a member is told when it starts, as its one argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Brief {
    /// Its rank, which is its id too.
    pub(super) rank: u16,
    /// All members' group.
    pub(super) group: GroupConfiguration,
    /// Where they meet.
    pub(super) place: LocalPlace,
    /// The input.
    pub(super) spool: Shape,
    /// Records to be delivered in all, repetitions included.
    pub(super) total: u64,
    /// How long to wait for the others.
    pub(super) join_timeout: Duration,
}

/// What the parent says once all members are there. To end, it closes the line.
pub(super) const GO: &str = "go";

/// What a member says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// All members are there.
    Joined,
    /// It is alive, and so far has delivered so many messages.
    Delivered(u64),
    /// It has delivered everything.
    Done(Box<Report>),
    /// It cannot go on: exit status and text; and the peer that it lost, if that is why.
    Failed {
        /// The exit status.
        status: u8,
        /// What is wrong and what to do.
        text: String,
    },
}

/// What a member did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Report {
    /// Own messages, nulls left out.
    pub(super) sent: u64,
    /// Messages that were handed over here.
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
    /// From commit to own delivery: values in nanoseconds, and how often each was seen.
    pub(super) latencies: Vec<(u64, u64)>,
    /// The largest of them, exactly.
    pub(super) latency_max_ns: u64,
}

/// A message that differs from what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wrong {
    /// Its place in the order.
    pub(super) place: u64,
    /// Who sent it.
    pub(super) sender: u16,
}
