//! The records of a history, with one type for reading and writing.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The version of the format that this crate writes, defined in `docs/history.md`.
pub const VERSION: u32 = 2;

/// The oldest version that this crate reads.
pub const VERSION_MIN: u32 = 1;

/// One record. Names borrow from the line that they were read from.
///
/// `t_ns` comes from the driver's clock, which is the same for all nodes. `inc` counts a node's
/// incarnations, from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "ev", rename_all = "lowercase")]
pub enum Event<'a> {
    /// The origin of the history. There is at most one such record, on the first line; it is
    /// displayed, but not judged.
    Run {
        /// The version of the history's format.
        version: u32,
        /// The scenario that was driven.
        #[serde(skip_serializing_if = "Option::is_none")]
        scenario: Option<Cow<'a, str>>,
        /// The seed of the scenario's plan.
        #[serde(skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
        /// The implementation's name and version.
        #[serde(skip_serializing_if = "Option::is_none")]
        adapter: Option<Cow<'a, str>>,
    },
    /// A group. Precedes every other record that names it.
    Group {
        /// Its name.
        group: Cow<'a, str>,
        /// The group's members; with views, all nodes that may become members.
        members: Vec<Cow<'a, str>>,
        /// The nodes that may send to it. They need not be members.
        senders: Vec<Cow<'a, str>>,
        /// The order that the group promises.
        #[serde(skip_serializing_if = "GroupOrder::is_default")]
        order: GroupOrder,
    },
    /// The start of a node's process.
    Start {
        /// The time of the event.
        t_ns: u64,
        /// The node.
        node: Cow<'a, str>,
        /// The number of the incarnation.
        inc: u32,
    },
    /// The installation of a view.
    View {
        /// The time of the installation.
        t_ns: u64,
        /// The member that installed the view.
        node: Cow<'a, str>,
        /// The number of the node's incarnation.
        inc: u32,
        /// The group.
        group: Cow<'a, str>,
        /// The view's id.
        view: u64,
        /// Its members.
        members: Vec<Cow<'a, str>>,
    },
    /// A request to a node to send.
    Multicast {
        /// The time of the request.
        t_ns: u64,
        /// The sender.
        node: Cow<'a, str>,
        /// The number of the sender's incarnation.
        inc: u32,
        /// The message's name, unique in the history.
        msg: Cow<'a, str>,
        /// The groups that the message is addressed to.
        groups: Vec<Cow<'a, str>>,
        /// Payload length in bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        /// The payload's digest, compared as text.
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<Cow<'a, str>>,
    },
    /// The sender's acceptance of a message.
    Accepted {
        /// The time of the event.
        t_ns: u64,
        /// The sender.
        node: Cow<'a, str>,
        /// The number of the sender's incarnation.
        inc: u32,
        /// The message.
        msg: Cow<'a, str>,
    },
    /// The sender's refusal of a message.
    Refused {
        /// The time of the event.
        t_ns: u64,
        /// The sender.
        node: Cow<'a, str>,
        /// The number of the sender's incarnation.
        inc: u32,
        /// The message.
        msg: Cow<'a, str>,
        /// Whether the message was definitely not sent and never will be. Otherwise it may or may
        /// not be delivered.
        #[serde(skip_serializing_if = "Clone::clone")]
        definite: bool,
        /// The implementation's reason.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<Cow<'a, str>>,
    },
    /// A member's delivery to its application.
    Deliver {
        /// The time of the event.
        t_ns: u64,
        /// The member.
        node: Cow<'a, str>,
        /// The number of the member's incarnation.
        inc: u32,
        /// The group through which the message was delivered.
        group: Cow<'a, str>,
        /// The view in which the message was delivered.
        #[serde(skip_serializing_if = "Option::is_none")]
        view: Option<u64>,
        /// The message; absent if the application was called with data that is not a message.
        msg: Option<Cow<'a, str>>,
        /// The message's sender, according to the member.
        #[serde(skip_serializing_if = "Option::is_none")]
        sender: Option<Cow<'a, str>>,
        /// Length of the delivered payload in bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        /// The digest of the delivered payload.
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<Cow<'a, str>>,
        /// Whether this repeats, from storage, a delivery of an earlier incarnation.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        replayed: bool,
    },
    /// A member's promise that its deliveries up to a position will survive its restart.
    Durable {
        /// The time of the event.
        t_ns: u64,
        /// The member.
        node: Cow<'a, str>,
        /// The number of the member's incarnation.
        inc: u32,
        /// The group.
        group: Cow<'a, str>,
        /// The position of the last such delivery, counted from 0 among the deliveries of this
        /// incarnation in this group.
        upto: u64,
    },
    /// The beginning of a member's leadership of its group.
    Leader {
        /// The time of the event.
        t_ns: u64,
        /// The member.
        node: Cow<'a, str>,
        /// The number of the member's incarnation.
        inc: u32,
        /// The group.
        group: Cow<'a, str>,
        /// The number of the leader's term, which rises with every new leader of the group.
        #[serde(skip_serializing_if = "Option::is_none")]
        term: Option<u64>,
    },
    /// A request to a node to leave all its groups.
    Leave {
        /// The time of the request.
        t_ns: u64,
        /// The node.
        node: Cow<'a, str>,
        /// The number of the node's incarnation.
        inc: u32,
    },
    /// A request to a node to stop.
    Stop {
        /// The time of the request.
        t_ns: u64,
        /// The node.
        node: Cow<'a, str>,
        /// The number of the node's incarnation.
        inc: u32,
    },
    /// A member's counts.
    Stats {
        /// The time of the event.
        t_ns: u64,
        /// The member.
        node: Cow<'a, str>,
        /// The number of the member's incarnation.
        inc: u32,
        /// Number of protocol writes posted since the incarnation began, excluding heartbeats.
        posts: u64,
    },
    /// A fault injected at nodes.
    Fault {
        /// The time of the event.
        t_ns: u64,
        /// The kind of fault.
        kind: FaultKind,
        /// The affected nodes. For a partition, these are the nodes on one side.
        nodes: Vec<Cow<'a, str>>,
        /// A description for human readers, if the kind does not say everything.
        #[serde(skip_serializing_if = "Option::is_none")]
        how: Option<Cow<'a, str>>,
    },
    /// The end of a node's process without being killed.
    End {
        /// The time of the event.
        t_ns: u64,
        /// The node.
        node: Cow<'a, str>,
        /// The number of the node's incarnation.
        inc: u32,
        /// The reason.
        reason: EndReason,
    },
    /// A record that this version does not know.
    Unknown {
        /// Its `ev`.
        #[serde(rename = "unknown")]
        ev: Cow<'a, str>,
    },
}

/// The order that a group promises its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupOrder {
    /// One order for all members, without cycles across all groups of this kind. This is the
    /// default.
    #[default]
    Total,
    /// One order for all members of the group, without a promise about other groups. It is meant
    /// for subgroups that overlap but do not coordinate.
    Group,
    /// Each sender's messages in the order in which it sent them, without an order between senders.
    Sender,
}

impl GroupOrder {
    /// Returns whether this is the default, which is not written.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Total
    }

    /// Returns whether all members have one order.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        *self != Self::Sender
    }
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// The process was ended without warning.
    Kill,
    /// The process was suspended.
    Stop,
    /// The process was resumed.
    Continue,
    /// The node was cut off from some or all of the nodes that are not named.
    Partition,
    /// The node's packets are delayed, and some of them are lost.
    Slow,
    /// All network faults of the node ended.
    Heal,
    /// The node's disk is full.
    Full,
    /// The node's disk has room again.
    Room,
}

/// The reason why a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndReason {
    /// The node stopped on request, after every message had had time to arrive.
    Done,
    /// The node left its groups on request.
    Left,
    /// The node gave up by itself and reported this.
    Halted,
    /// The node did not stop on request, and the driver killed it.
    Hung,
}
