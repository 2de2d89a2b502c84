//! The records of a history, one type for reading and writing.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The version of the format that this crate writes, as `docs/history.md` defines it.
pub const VERSION: u32 = 2;

/// The oldest version that it reads.
pub const VERSION_MIN: u32 = 1;

/// One record. Names borrow from the line that they were read from.
///
/// `t_ns` is one clock for all nodes, the driver's. `inc` counts a node's starts, from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "ev", rename_all = "lowercase")]
pub enum Event<'a> {
    /// How the history was made. At most one, on the first line; what it says is shown, not judged.
    Run {
        /// The version of the history's format.
        version: u32,
        /// The scenario that was driven.
        #[serde(skip_serializing_if = "Option::is_none")]
        scenario: Option<Cow<'a, str>>,
        /// The seed of its plan.
        #[serde(skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
        /// The implementation's name and version.
        #[serde(skip_serializing_if = "Option::is_none")]
        adapter: Option<Cow<'a, str>>,
    },
    /// A group, before any other record that names it.
    Group {
        /// Its name.
        group: Cow<'a, str>,
        /// Its members, or all that may become members where there are views.
        members: Vec<Cow<'a, str>>,
        /// The nodes that may send to it. They need not be members.
        senders: Vec<Cow<'a, str>>,
        /// What order it promises.
        #[serde(skip_serializing_if = "GroupOrder::is_default")]
        order: GroupOrder,
    },
    /// A node's process began.
    Start {
        /// When.
        t_ns: u64,
        /// The node.
        node: Cow<'a, str>,
        /// Which of its starts this is.
        inc: u32,
    },
    /// A member installed a view.
    View {
        /// When.
        t_ns: u64,
        /// The member that installed it.
        node: Cow<'a, str>,
        /// Which of the node's starts.
        inc: u32,
        /// The group.
        group: Cow<'a, str>,
        /// The view's id.
        view: u64,
        /// Its members.
        members: Vec<Cow<'a, str>>,
    },
    /// A node was asked to send.
    Multicast {
        /// When it was asked.
        t_ns: u64,
        /// The sender.
        node: Cow<'a, str>,
        /// Which of the sender's starts.
        inc: u32,
        /// The message's name, unique in the history.
        msg: Cow<'a, str>,
        /// The groups that it is for.
        groups: Vec<Cow<'a, str>>,
        /// The payload's size.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        /// The payload's digest, compared as text.
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<Cow<'a, str>>,
    },
    /// The sender took a message.
    Accepted {
        /// When.
        t_ns: u64,
        /// The sender.
        node: Cow<'a, str>,
        /// Which of the sender's starts.
        inc: u32,
        /// The message.
        msg: Cow<'a, str>,
    },
    /// The sender did not take a message.
    Refused {
        /// When.
        t_ns: u64,
        /// The sender.
        node: Cow<'a, str>,
        /// Which of the sender's starts.
        inc: u32,
        /// The message.
        msg: Cow<'a, str>,
        /// Whether it was surely not sent, and never will be. If not, it may be delivered or not.
        #[serde(skip_serializing_if = "Clone::clone")]
        definite: bool,
        /// The implementation's reason.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<Cow<'a, str>>,
    },
    /// A member handed something to its application.
    Deliver {
        /// When.
        t_ns: u64,
        /// The member.
        node: Cow<'a, str>,
        /// Which of its starts.
        inc: u32,
        /// The group by which it came.
        group: Cow<'a, str>,
        /// The view in which it was delivered.
        #[serde(skip_serializing_if = "Option::is_none")]
        view: Option<u64>,
        /// The message; nothing where the application was called for what is nobody's message.
        msg: Option<Cow<'a, str>>,
        /// The node that sent it, as the member says.
        #[serde(skip_serializing_if = "Option::is_none")]
        sender: Option<Cow<'a, str>>,
        /// The size of what was delivered.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        /// The digest of what was delivered.
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<Cow<'a, str>>,
        /// Whether this repeats, from storage, what an earlier start delivered.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        replayed: bool,
    },
    /// A member's deliveries up to a place will survive its restart.
    Durable {
        /// When.
        t_ns: u64,
        /// The member.
        node: Cow<'a, str>,
        /// Which of its starts.
        inc: u32,
        /// The group.
        group: Cow<'a, str>,
        /// The place, from 0, of the last such delivery among those of this start in this group.
        upto: u64,
    },
    /// A member leads its group from now on.
    Leader {
        /// When.
        t_ns: u64,
        /// The member.
        node: Cow<'a, str>,
        /// Which of its starts.
        inc: u32,
        /// The group.
        group: Cow<'a, str>,
        /// The number of its term, which rises from leader to leader of the group.
        #[serde(skip_serializing_if = "Option::is_none")]
        term: Option<u64>,
    },
    /// A node was asked to leave all its groups.
    Leave {
        /// When it was asked.
        t_ns: u64,
        /// The node.
        node: Cow<'a, str>,
        /// Which of its starts.
        inc: u32,
    },
    /// A node was asked to stop.
    Stop {
        /// When it was asked.
        t_ns: u64,
        /// The node.
        node: Cow<'a, str>,
        /// Which of its starts.
        inc: u32,
    },
    /// What a member counted.
    Stats {
        /// When.
        t_ns: u64,
        /// The member.
        node: Cow<'a, str>,
        /// Which of its starts.
        inc: u32,
        /// Protocol writes posted since its start, heartbeats left out.
        posts: u64,
    },
    /// Something was done to nodes.
    Fault {
        /// When.
        t_ns: u64,
        /// What.
        kind: FaultKind,
        /// To which nodes. In a partition, these are one side of it.
        nodes: Vec<Cow<'a, str>>,
        /// How, for people, where the kind does not say all of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        how: Option<Cow<'a, str>>,
    },
    /// A node's process came to its end by itself.
    End {
        /// When.
        t_ns: u64,
        /// The node.
        node: Cow<'a, str>,
        /// Which of its starts.
        inc: u32,
        /// Why.
        reason: EndReason,
    },
    /// A record that this version does not know.
    Unknown {
        /// Its `ev`.
        #[serde(rename = "unknown")]
        ev: Cow<'a, str>,
    },
}

/// What order a group promises its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupOrder {
    /// One order for all, and no cycle with the orders of the other such groups. The default.
    #[default]
    Total,
    /// One order for all its members, and nothing about other groups: so do subgroups that overlap
    /// and know nothing of each other.
    Group,
    /// Each sender's messages in that sender's order, and nothing between senders.
    Sender,
}

impl GroupOrder {
    /// Whether it is the default, which is not written.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Total
    }

    /// Whether its members have one order.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        *self != Self::Sender
    }
}

/// What can be done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// Its process was ended without warning.
    Kill,
    /// Its process was suspended.
    Stop,
    /// Its process was resumed.
    Continue,
    /// It was cut off from the nodes that are not named, or from some of them.
    Partition,
    /// Its packets are delayed, and some of them are lost.
    Slow,
    /// All of that ended.
    Heal,
    /// There is no room left on its disk.
    Full,
    /// There is room on it again.
    Room,
}

/// Why a process came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndReason {
    /// It was asked to stop, after everything was given time to arrive.
    Done,
    /// It left its groups as it was asked to.
    Left,
    /// It gave up by itself and said so.
    Halted,
    /// It was asked to stop and did not; the driver ended it.
    Hung,
}
