//! The messages between nodes that restart together.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_core::ids::{DurableCount, NodeId, ViewId};

use crate::group::description::view::WireView;
use crate::group::durable::comparison::LogPlace;
use crate::group::durable::delivered::Delivered;
use crate::group::engine::promising::Promised;

/// A request from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RestartRequest {
    /// Asks what the node has on disk.
    Answer,
    /// Asks the node to take part in this attempt, unless its state has changed since it answered.
    Hear { ballot: (u32, u32), answered: Box<NodeAnswer> },
    /// Asks the node to repair damaged records. Each run is a range of a logged subgroup's records,
    /// with the node that has them intact.
    Repair { runs: Vec<DamagedRange> },
    /// Asks the node to fetch the chosen logs, and to promise the next view.
    Take(Box<Order>),
    /// The next view has been decided. Either the group begins in it, or the nodes are asked once
    /// more.
    Decided { view: WireView, begins: bool, with_less: bool },
    /// Asks for the number of records that a log has in common with a log that ends at `last`.
    Compare { subgroup: u16, last: Option<LogPlace> },
    /// Asks for records of a log, from `from` up to, but not including, `to`: as many as fit into
    /// one message.
    Fetch { subgroup: u16, from: u64, to: u64 },
    /// Asks for the state at the beginning of the log.
    State { subgroup: u16 },
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RestartReply {
    Answer(Box<NodeAnswer>),
    Done,
    /// The request cannot be met, for this reason.
    Refused(String),
    Common {
        records: Option<u64>,
    },
    Records(Vec<Delivered>),
    State {
        view: u64,
        records: u64,
        bytes: Vec<u8>,
    },
}

/// A range of damaged records of a logged subgroup, and a node on which they are intact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DamagedRange {
    pub(super) subgroup: u16,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) node: u32,
}

/// The tasks of a participant in an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) ballot: (u32, u32),
    pub(super) base: WireView,
    pub(super) next: WireView,
    /// For each logged subgroup, the node whose log is used, and the end of that log.
    pub(super) logs: Vec<Option<(u32, u64)>>,
}

/// A node's data on disk, as sent to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeAnswer {
    pub(super) node: u32,
    pub(super) decided: Option<WireView>,
    pub(super) promise: Option<Promised>,
    pub(super) heard: (u32, u32),
    /// One entry per logged subgroup.
    pub(super) logs: Vec<Option<LogAnswer>>,
    /// The newest view that contained the node and that began with less than a majority.
    pub(super) with_less: Option<u64>,
    /// The number of records in its logs, if the node has lost its membership record.
    pub(super) forgotten: u64,
}

/// A log, as described to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogAnswer {
    pub(super) first: u64,
    pub(super) view: u64,
    pub(super) end: u64,
    pub(super) damaged: Vec<(u64, u64)>,
    /// Whether this is not the log in the node's notes.
    pub(super) is_of_another: bool,
    /// The notes about the log: its end, and the numbers of records reported as durable at a
    /// majority and everywhere.
    pub(super) noted: [u64; 3],
}

/// An answer in the core's form, which owns the data that it lends.
pub(super) struct Plain {
    node: NodeId,
    decided: Option<(ViewId, Vec<NodeId>)>,
    promise: Option<(PlainPromise, Vec<NodeId>, Vec<Option<DurableCount>>)>,
    heard: core::PromiseBallot,
    damaged: Vec<Vec<(DurableCount, DurableCount)>>,
    ends: Vec<Option<(DurableCount, core::LogEnd, core::LogNote)>>,
    with_less: Option<ViewId>,
}

struct PlainPromise {
    ballot: core::PromiseBallot,
    id: ViewId,
}

use tramontane_core::restart as core;

fn nodes(ids: &[u32]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId).collect()
}

const fn ballot((attempt, leader): (u32, u32)) -> core::PromiseBallot {
    core::PromiseBallot { attempt, leader }
}

impl From<&NodeAnswer> for Plain {
    fn from(answer: &NodeAnswer) -> Self {
        let run = |(from, to): &(u64, u64)| (DurableCount(*from), DurableCount(*to));
        let damaged = |log: &Option<LogAnswer>| {
            log.iter().flat_map(|log| &log.damaged).map(run).collect::<Vec<_>>()
        };
        let ends = |log: &Option<LogAnswer>| {
            let log = log.as_ref()?;
            let end = core::LogEnd { view: ViewId(log.view), end: DurableCount(log.end) };
            let [noted, majority, everywhere] = log.noted.map(DurableCount);
            let is_of_another = log.is_of_another;
            let note = core::LogNote { is_of_another, end: noted, majority, everywhere };
            Some((DurableCount(log.first), end, note))
        };
        Self {
            node: NodeId(answer.node),
            decided: answer.decided.as_ref().map(|view| (ViewId(view.id()), view.members())),
            promise: answer.promise.as_ref().map(|promise| {
                let ends = promise.ends.iter().map(|end| end.map(DurableCount)).collect();
                let own = PlainPromise { ballot: promise.ballot(), id: ViewId(promise.view) };
                (own, nodes(&promise.members), ends)
            }),
            heard: ballot(answer.heard),
            damaged: answer.logs.iter().map(damaged).collect(),
            ends: answer.logs.iter().map(ends).collect(),
            with_less: answer.with_less.map(ViewId),
        }
    }
}

impl Plain {
    /// Returns the logs, to be lent to [`Plain::answer`].
    pub(super) fn logs(&self) -> Vec<Option<core::LogState<'_>>> {
        let logs = self.ends.iter().zip(&self.damaged);
        let log = |(first, end, note), damaged| core::LogState { first, end, damaged, note };
        logs.map(|(ends, damaged)| ends.map(|ends| log(ends, damaged.as_slice()))).collect()
    }

    pub(super) fn answer<'a>(&'a self, logs: &'a [Option<core::LogState<'a>>]) -> core::Answer<'a> {
        core::Answer {
            node: self.node,
            decided: self
                .decided
                .as_ref()
                .map(|(id, members)| core::KnownView { id: *id, members }),
            promise: self.promise.as_ref().map(|(promise, members, ends)| core::Promise {
                ballot: promise.ballot,
                next: core::KnownView { id: promise.id, members },
                ends,
            }),
            heard: self.heard,
            logs,
            with_less: self.with_less,
        }
    }
}

/// Time limit for a reply. It is long, because logs may have to be fetched first.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// The maximum length of a restarting node's message. One record may be as long as the largest
/// message.
pub(super) const MESSAGE_BYTES_MAX: u64 = 1 << 32;
