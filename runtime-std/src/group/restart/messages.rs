//! The messages between nodes that restart together.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_core::ids::{DurableCount, NodeId, ViewId};

use crate::group::description::view::WireView;
use crate::group::durable::comparison::LogPlace;
use crate::group::durable::delivered::Delivered;
use crate::group::engine::promising::Promised;

/// What one node asks another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RestartRequest {
    /// What do you have?
    Answer,
    /// Take part in this attempt, if you still have what you answered.
    Hear { ballot: (u32, u32), answered: Box<NodeAnswer> },
    /// Repair damaged records: each run of a logged subgroup's records from that node.
    Repair { runs: Vec<Run> },
    /// Get the logs that are taken, and promise the next view.
    Take(Box<Order>),
    /// The next view is decided. The group begins in it, or is asked once more.
    Decided { view: WireView, begins: bool, with_less: bool },
    /// How many records of a log are those of one that ends there?
    Compare { subgroup: u16, last: Option<LogPlace> },
    /// Records of a log, from one number to before another: as many as go in one message.
    Fetch { subgroup: u16, from: u64, to: u64 },
    /// The state that a log begins with.
    State { subgroup: u16 },
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RestartReply {
    Answer(Box<NodeAnswer>),
    Done,
    /// It is not possible, and why.
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

/// Damaged records of a logged subgroup, and who has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) subgroup: u16,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) node: u32,
}

/// What a participant of an attempt has to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) ballot: (u32, u32),
    pub(super) base: WireView,
    pub(super) next: WireView,
    /// For each logged subgroup whose log is taken, and where it ends.
    pub(super) logs: Vec<Option<(u32, u64)>>,
}

/// What a node has on disk, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeAnswer {
    pub(super) node: u32,
    pub(super) decided: Option<WireView>,
    pub(super) promise: Option<Promised>,
    pub(super) heard: (u32, u32),
    /// One a logged subgroup.
    pub(super) logs: Vec<Option<LogAnswer>>,
    /// The newest view that it was in and that was begun with less.
    pub(super) with_less: Option<u64>,
    /// So many records are in its logs, and it has lost its record of the membership.
    pub(super) forgotten: u64,
}

/// A log, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogAnswer {
    pub(super) first: u64,
    pub(super) view: u64,
    pub(super) end: u64,
    pub(super) damaged: Vec<(u64, u64)>,
    /// The log is another one than was noted.
    pub(super) is_of_another: bool,
    /// What was noted of it: its end, and what was seen to be durable at a majority and everywhere.
    pub(super) noted: [u64; 3],
}

/// What an answer says, as the core takes it: owned, so that it can be lent.
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
    /// Its logs, to be lent to [`Plain::answer`].
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

/// How long a reply may take: logs may have to be fetched for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// The longest message of a node that restarts: one record may be as long as the longest message.
pub(super) const MESSAGE_BYTES_MAX: u64 = 1 << 32;
