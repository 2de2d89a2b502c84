//! The disks of a view's members, and of nodes that join it, when all of them die.
//!
//! A state of the search over views leads to many disks: each sync that was not awaited may or may
//! not have returned. A member promises before it echoes, notes a decision before it does anything
//! in the next view, and delivers messages before its log has them.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Ballot, Disk, OwnedLog, Promised};
use crate::arena::Arena;
use crate::around::Kept;
use tramontane_core::ids::NodeId;
use tramontane_core::restart::LogNote;
use tramontane_core::view::Status;

/// A message delivered in the view after the one that was searched.
const NEXT_MESSAGE: u64 = 100;

/// One node's disk, including the records of its only log, each with its view and message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Store {
    pub decided: Option<(u64, Vec<u32>)>,
    pub promise: Option<Promised>,
    pub heard: Ballot,
    /// Records of the log; `None` at a node that was never a member and has no state of the group
    /// yet.
    pub records: Option<Vec<(u64, u64)>>,
    /// The node's note of its log.
    pub note: LogNote,
}

impl Store {
    /// Returns the node's answer.
    pub fn disk(&self) -> Disk {
        let end = |records: &Vec<(u64, u64)>| OwnedLog {
            note: self.note,
            ..OwnedLog::new(records.last().map_or(0, |record| record.0), records.len() as u64)
        };
        Disk {
            decided: self.decided.clone(),
            promise: self.promise.clone(),
            heard: self.heard,
            logs: vec![self.records.as_ref().map(end)],
            with_less: None,
        }
    }
}

/// The state of all disks, and the facts at the time before all nodes died.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DisksCase {
    pub nodes: BTreeMap<u32, Store>,
    /// Messages that may have been reported as durable at a majority, in order.
    pub reported: Vec<u64>,
    /// Views that any member has decided, each with all messages delivered up to its beginning.
    pub decided: BTreeMap<u64, (Vec<u32>, Vec<u64>)>,
}

/// A sync that a host omits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OmittedSync {
    None,
    /// Logs are not synced up to the trims before the promise is.
    LogNotSynced,
    /// A member continues in the next view before it has noted that this view is decided.
    DecisionNotSynced,
    /// A joining node counts before it has its state.
    StateNotSynced,
    /// A restart decides without having promised.
    RestartNotPromised,
    /// A restart's promise replaces the last promise, and the restart's base is not noted with it.
    BaseNotNoted,
    /// A node takes part in a restart before it has noted this.
    HeardNotNoted,
    /// Records that extend past the chosen log are kept.
    TailReplayed,
    /// No sync is omitted, but the disks have changed.
    DisksChanged,
}

fn ids(members: &[NodeId]) -> Vec<u32> {
    members.iter().map(|node| node.0).collect()
}

/// Returns the messages at positions below a frontier.
fn messages(arena: &Arena, frontier: u64) -> Vec<u64> {
    let senders = arena.members.len() as u64;
    let at = |place: u64| {
        let rounds = &arena.members[(place % senders) as usize].around.parts[0].rounds;
        rounds.get((place / senders) as usize).copied().flatten()
    };
    (0..frontier).filter_map(at).collect()
}

/// A member's possible disks, each with the number of messages of this view that it may have
/// reported.
type PossibleDisks = Vec<(Store, usize)>;

fn promised(arena: &Arena, kept: &Kept) -> Promised {
    let end = kept.trims[0].map(|trim| messages(arena, trim).len() as u64);
    let ballot = (0, u32::from(kept.ballot.0));
    Promised { ballot, id: 2, members: ids(&kept.members), ends: vec![end] }
}

fn options_of(arena: &Arena, rank: usize, fault: OmittedSync) -> PossibleDisks {
    let setting = arena.setting;
    let around = &arena.members[rank].around;
    let first = (1, ids(setting.layout.group().members));
    let delivered = messages(arena, around.parts[0].delivered);
    let store = |log: &[u64], kept: &Option<Kept>| Store {
        decided: Some(first.clone()),
        promise: kept.as_ref().map(|kept| promised(arena, kept)),
        heard: (0, 0),
        records: Some(log.iter().map(|message| (1, *message)).collect()),
        note: LogNote::default(),
    };
    let sealed = |kept: &Kept| kept.trims[0].map(|trim| messages(arena, trim));
    let kept = around.kept.as_ref().and_then(sealed).unwrap_or_default();
    // The log is on disk up to the trims; later deliveries may be on disk too.
    let least = if fault == OmittedSync::LogNotSynced { 0 } else { kept.len() };
    let all = if kept.len() > delivered.len() { &kept } else { &delivered };
    let mut options: PossibleDisks = (least..=all.len())
        .map(|end| (store(&all[..end], &around.kept), end.min(delivered.len())))
        .collect();
    if let Some(keeping) = &around.keeping {
        let log = sealed(keeping).unwrap_or_default();
        let reported = log.len().min(delivered.len());
        options.push((store(&log, &around.kept), reported));
        options.push((store(&log, &Some(keeping.clone())), reported));
    }
    let decision = arena.decision.as_ref().filter(|_| arena.status(rank) == Status::Installed);
    if let Some(decision) = decision {
        let next = (2, ids(&decision.members));
        for (store, reported) in options.clone() {
            options.push((Store { decided: Some(next.clone()), ..store }, reported));
        }
    }
    options
}

/// Returns the possible disks of a node whose join was requested with `wish`.
fn options_of_joiner(arena: &Arena, node: u32, fault: OmittedSync) -> PossibleDisks {
    let mut options = vec![(Store::default(), 0)];
    let most = arena.members.iter().map(|member| member.around.parts[0].delivered).max();
    let state = messages(arena, most.unwrap_or(0));
    for end in 0..=state.len() {
        let records = state[..end].iter().map(|message| (1, *message)).collect();
        options.push((Store { records: Some(records), ..Store::default() }, 0));
    }
    let decision = arena.decision.as_ref();
    let Some(decision) = decision.filter(|next| ids(&next.members).contains(&node)) else {
        return options;
    };
    let state = messages(arena, decision.trims[0].unwrap_or(0));
    let least = if fault == OmittedSync::StateNotSynced { 0 } else { state.len() };
    for end in least..=state.len() {
        let records = state[..end].iter().map(|message| (1, *message)).collect();
        let decided = Some((2, ids(&decision.members)));
        options.push((Store { decided, records: Some(records), ..Store::default() }, state.len()));
    }
    options
}

/// Returns every case that a state may leave behind.
pub fn cases_of(arena: &Arena, joiners: &[NodeId], fault: OmittedSync) -> BTreeSet<DisksCase> {
    let members = ids(arena.setting.layout.group().members);
    let mut options: Vec<(u32, PossibleDisks)> =
        (0..members.len()).map(|rank| (members[rank], options_of(arena, rank, fault))).collect();
    for node in joiners {
        options.push((node.0, options_of_joiner(arena, node.0, fault)));
    }
    let mut decided = BTreeMap::from([(1, (members.clone(), Vec::new()))]);
    if let Some(next) = &arena.decision {
        let all = messages(arena, next.trims[0].unwrap_or(0));
        decided.insert(2, (ids(&next.members), all));
    }
    let mut cases = BTreeSet::new();
    let mut picks = vec![0; options.len()];
    loop {
        let picked: Vec<(u32, &(Store, usize))> =
            options.iter().zip(&picks).map(|((node, all), at)| (*node, &all[*at])).collect();
        cases.extend(cases_with(arena, &members, &picked, &decided, fault));
        let Some(at) = (0..picks.len()).find(|at| picks[*at] + 1 < options[*at].1.len()) else {
            return cases;
        };
        picks[..at].fill(0);
        picks[at] += 1;
    }
}

/// Returns a case with exactly these disks, and, if the next view continues, the cases with a
/// message of it.
fn cases_with(
    arena: &Arena,
    members: &[u32],
    picked: &[(u32, &(Store, usize))],
    decided: &BTreeMap<u64, (Vec<u32>, Vec<u64>)>,
    fault: OmittedSync,
) -> Vec<DisksCase> {
    let longest = arena.members.iter().map(|member| member.around.parts[0].delivered).max();
    let delivered = messages(arena, longest.unwrap_or(0));
    let reported_by = |of: &[u32]| {
        let counts = picked.iter().filter(|(node, _)| of.contains(node)).map(|(_, pick)| pick.1);
        let mut counts: Vec<usize> = counts.collect();
        counts.sort_unstable();
        counts[(counts.len() - 1) / 2]
    };
    let reported = delivered[..reported_by(members)].to_vec();
    let nodes: BTreeMap<u32, Store> =
        picked.iter().map(|(node, (store, _))| (*node, store.clone())).collect();
    let plain = DisksCase { nodes, reported, decided: decided.clone() };
    let mut cases = vec![plain.clone()];
    let Some((next, before)) = decided.get(&2) else { return cases };
    let is_in = |node: &u32| {
        let rank = members.iter().position(|member| member == node);
        rank.is_none_or(|rank| arena.status(rank) == Status::Installed)
    };
    let knows = |node: &u32| {
        let store = &plain.nodes[node];
        let is_noted = store.decided.as_ref().is_some_and(|decided| decided.0 == 2);
        let is_member = members.contains(node);
        is_noted || fault == OmittedSync::DecisionNotSynced && is_member
    };
    if !next.iter().all(|node| is_in(node) && knows(node)) {
        return cases;
    }
    // The next view delivers a message: any of its members may have it on disk if it has all
    // earlier ones.
    let whole = |node: &u32| {
        let records = plain.nodes[node].records.iter().flatten();
        records.map(|record| record.1).eq(before.iter().copied())
    };
    for with in 1..1_u32 << next.len() {
        let has: Vec<u32> =
            next.iter().enumerate().filter(|(at, _)| with >> at & 1 == 1).map(|at| *at.1).collect();
        if !has.iter().all(whole) && fault == OmittedSync::None {
            continue;
        }
        let mut case = plain.clone();
        for node in &has {
            let store = case.nodes.get_mut(node).expect("a node");
            store.records.get_or_insert_default().push((2, NEXT_MESSAGE));
        }
        if has.len() * 2 > next.len() {
            case.reported = before.clone();
            case.reported.push(NEXT_MESSAGE);
        }
        cases.push(case);
    }
    cases
}
