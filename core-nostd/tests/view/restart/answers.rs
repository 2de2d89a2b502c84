//! Answers of nodes to a restart, in owned form.

use tramontane_core::ids::{DurableCount, NodeId, ViewId};
use tramontane_core::restart::{
    Answer, KnownView, LogEnd, LogNote, LogState, Promise, PromiseBallot, Restart,
};

pub type Ballot = (u32, u32);

/// The state that one node has on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Disk {
    pub decided: Option<(u64, Vec<u32>)>,
    pub promise: Option<Promised>,
    pub heard: Ballot,
    /// One log per logged subgroup.
    pub logs: Vec<Option<OwnedLog>>,
    pub with_less: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Promised {
    pub ballot: Ballot,
    pub id: u64,
    pub members: Vec<u32>,
    pub ends: Vec<Option<u64>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnedLog {
    pub first: u64,
    pub view: u64,
    pub end: u64,
    pub damaged: Vec<(u64, u64)>,
    pub note: LogNote,
}

/// Returns a note of a log that ended at `end`, and of the durable counts that its view had shown.
pub fn note(end: u64, majority: u64, everywhere: u64) -> LogNote {
    let [end, majority, everywhere] = [end, majority, everywhere].map(DurableCount);
    LogNote { is_of_another: false, end, majority, everywhere }
}

impl OwnedLog {
    pub fn new(view: u64, end: u64) -> Self {
        Self { first: 0, view, end, ..Self::default() }
    }

    pub fn is_damaged(&self, at: u64) -> bool {
        self.damaged.iter().any(|run| run.0 <= at && at < run.1)
    }
}

impl Disk {
    pub fn of(id: u64, members: &[u32], logs: &[Option<(u64, u64)>]) -> Self {
        let log = |log: &Option<(u64, u64)>| log.map(|(view, end)| OwnedLog::new(view, end));
        Self {
            decided: Some((id, members.to_vec())),
            promise: None,
            heard: (0, 0),
            logs: logs.iter().map(log).collect(),
            with_less: None,
        }
    }

    /// Adds a note of the first log.
    pub fn noting(mut self, note: LogNote) -> Self {
        self.logs[0].as_mut().expect("a log").note = note;
        self
    }

    pub fn promising(
        mut self,
        ballot: Ballot,
        id: u64,
        members: &[u32],
        ends: &[Option<u64>],
    ) -> Self {
        self.promise =
            Some(Promised { ballot, id, members: members.to_vec(), ends: ends.to_vec() });
        self
    }
}

fn nodes(ids: &[u32]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId).collect()
}

/// All the data that a `Restart` borrows.
#[derive(Default)]
struct RestartMemory {
    views: Vec<Vec<NodeId>>,
    ends: Vec<Vec<Option<DurableCount>>>,
    damaged: Vec<Vec<Vec<(DurableCount, DurableCount)>>>,
}

/// Calls `ask` with a restart of these nodes' answers.
pub fn with_restart<R>(
    disks: &[(u32, &Disk)],
    subgroups: &[Vec<u32>],
    ask: impl FnOnce(Restart<'_>) -> R,
) -> R {
    let mut lent = RestartMemory::default();
    for (_, disk) in disks {
        lent.views.push(disk.decided.as_ref().map_or(Vec::new(), |view| nodes(&view.1)));
        lent.views
            .push(disk.promise.as_ref().map_or(Vec::new(), |promise| nodes(&promise.members)));
        let ends = disk.promise.iter().flat_map(|promise| &promise.ends);
        lent.ends.push(ends.map(|end| end.map(DurableCount)).collect());
        let counts = |log: &Option<OwnedLog>| {
            let runs = log.iter().flat_map(|log| &log.damaged);
            runs.map(|run| (DurableCount(run.0), DurableCount(run.1))).collect()
        };
        lent.damaged.push(disk.logs.iter().map(counts).collect());
    }
    let logs: Vec<Vec<Option<LogState<'_>>>> = disks
        .iter()
        .zip(&lent.damaged)
        .map(|((_, disk), damaged)| {
            let with_damage = disk.logs.iter().zip(damaged);
            with_damage
                .map(|(log, damaged)| {
                    log.as_ref().map(|log| LogState {
                        first: DurableCount(log.first),
                        end: LogEnd { view: ViewId(log.view), end: DurableCount(log.end) },
                        damaged,
                        note: log.note,
                    })
                })
                .collect()
        })
        .collect();
    let answers: Vec<Answer<'_>> = disks
        .iter()
        .enumerate()
        .map(|(at, (node, disk))| Answer {
            node: NodeId(*node),
            decided: disk
                .decided
                .as_ref()
                .map(|view| KnownView { id: ViewId(view.0), members: &lent.views[2 * at] }),
            promise: disk.promise.as_ref().map(|promise| Promise {
                ballot: PromiseBallot { attempt: promise.ballot.0, leader: promise.ballot.1 },
                next: KnownView { id: ViewId(promise.id), members: &lent.views[2 * at + 1] },
                ends: &lent.ends[at],
            }),
            heard: PromiseBallot { attempt: disk.heard.0, leader: disk.heard.1 },
            logs: &logs[at],
            with_less: disk.with_less.map(ViewId),
        })
        .collect();
    let subgroups: Vec<Vec<NodeId>> = subgroups.iter().map(|ids| nodes(ids)).collect();
    let subgroups: Vec<&[NodeId]> = subgroups.iter().map(Vec::as_slice).collect();
    ask(Restart::new(&answers, &subgroups))
}
