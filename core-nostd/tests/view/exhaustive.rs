//! Small views: every interleaving of steps and pulls, and a crash at every write.
//!
//! A transition is one step of one member, before which it pulls everything that any of the others
//! have published. If a crash is still allowed, each such step is also taken with a crash of its
//! member after each of its writes, with every combination of the writes that the others still see.
//! Reports of lost members arrive at any time after the crash, at each member separately.

use std::collections::HashSet;

use tramontane_core::ids::{NodeId, Rank, Time};

use crate::arena::{Arena, ArenaSetting, setting, timeless};
use crate::oracle::{check, check_end};

/// Size and conditions of a search.
#[derive(Clone)]
pub struct SearchScope {
    pub members: usize,
    /// Members that send a message in their first step.
    pub senders: Vec<usize>,
    /// Members that have asked to leave.
    pub leavers: Vec<usize>,
    /// Number of members that may crash, and which ones.
    pub crashes: usize,
    pub victims: Vec<usize>,
    /// Unfounded reports of a loss: the reporter, and the peer.
    pub mistakes: Vec<(usize, usize)>,
    /// Requests that members may make at any time: for a node's join, or for their own leave.
    pub wishes: Vec<(usize, Option<NodeId>)>,
    /// Whether the disk matters: if so, a promise is on disk one step after it was requested.
    pub keeps_promises: bool,
    /// Maximum number of states; a search that stops there is not exhaustive.
    pub states_max: usize,
}

impl SearchScope {
    pub fn of(members: usize) -> Self {
        Self {
            members,
            senders: vec![0, 1],
            leavers: Vec::new(),
            crashes: 0,
            victims: (0..members).collect(),
            mistakes: Vec::new(),
            wishes: Vec::new(),
            keeps_promises: false,
            states_max: usize::MAX,
        }
    }
}

/// Counts of a search.
#[derive(Clone, Debug, Default)]
pub struct ExhaustiveCounts {
    pub states: usize,
    pub transitions: usize,
    pub crashes: usize,
    /// Number of states without further transitions, and of those among them that have a decision.
    pub ends: usize,
    pub decided: usize,
    /// Distinct decisions over all ends.
    pub decisions: HashSet<String>,
    pub complete: bool,
}

/// A state of the search: the view, and the faults that may still occur.
#[derive(Clone)]
struct SearchState {
    arena: Arena,
    crashes: usize,
    /// The reported losses, as bits of `reader * members + lost`.
    reported: u64,
    mistakes: u64,
    wishes: u64,
}

impl SearchState {
    fn key(&self) -> u64 {
        let rest = [self.crashes as u64, self.reported, self.mistakes, self.wishes];
        rest.iter().fold(self.arena.fingerprint(), |key, part| {
            (key ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
        })
    }
}

/// Explores a scope completely, or stops at the first incorrect state.
pub fn explore(scope: &SearchScope) -> Result<ExhaustiveCounts, String> {
    explore_each(scope, |_| {})
}

/// Explores a scope, and passes each state to `show`.
pub fn explore_each(
    scope: &SearchScope,
    mut show: impl FnMut(&Arena),
) -> Result<ExhaustiveCounts, String> {
    let nodes: Vec<NodeId> = (0..scope.members as u32).map(|id| NodeId(id + 10)).collect();
    let everyone: Vec<Rank> = (0..scope.members as u16).map(Rank).collect();
    let setting = setting(1, &nodes, &[everyone], timeless());
    let setting = ArenaSetting { keeps_promises: scope.keeps_promises, ..setting };
    let mut arena = Arena::new(Box::leak(setting.into()));
    for leaver in &scope.leavers {
        arena.leave(*leaver);
    }
    let start = SearchState { arena, crashes: 0, reported: 0, mistakes: 0, wishes: 0 };
    let mut found = ExhaustiveCounts { complete: true, ..ExhaustiveCounts::default() };
    let mut known = HashSet::from([start.key()]);
    let mut stack = vec![start];
    while let Some(node) = stack.pop() {
        found.states += 1;
        show(&node.arena);
        if found.states >= scope.states_max {
            found.complete = false;
            return Ok(found);
        }
        let mut moved = false;
        let key = node.key();
        let mut go_to =
            |next: SearchState, found: &mut ExhaustiveCounts, stack: &mut Vec<SearchState>| {
                found.transitions += 1;
                let next_key = next.key();
                if known.insert(next_key) {
                    stack.push(next);
                }
                next_key != key
            };
        for rank in (0..scope.members).filter(|rank| node.arena.is_active(*rank)) {
            let worth = |writer: &usize| {
                node.arena.reads(rank, *writer) && node.arena.unseen(rank, *writer) > 0
            };
            let sources: Vec<usize> = (0..scope.members).filter(worth).collect();
            for pulled in 0..1_u32 << sources.len() {
                let mut next = node.clone();
                for (bit, writer) in sources.iter().enumerate() {
                    if pulled >> bit & 1 == 1 {
                        next.arena.pull(rank, *writer, usize::MAX);
                    }
                }
                let before = next.arena.members[rank].log.len();
                step(&mut next.arena, rank, scope)?;
                let after = next.arena.members[rank].log.len();
                if node.crashes < scope.crashes && scope.victims.contains(&rank) {
                    for crashed in crashes_of(&next, rank, before, after) {
                        found.crashes += 1;
                        go_to(crashed, &mut found, &mut stack);
                        moved = true;
                    }
                }
                moved |= go_to(next, &mut found, &mut stack);
            }
        }
        for (reader, lost) in reports(&node, scope) {
            let mut next = node.clone();
            next.arena.lose(reader, lost);
            next.reported |= 1 << (reader * scope.members + lost);
            moved |= go_to(next, &mut found, &mut stack);
        }
        for (at, (reader, lost)) in scope.mistakes.iter().enumerate() {
            if node.mistakes >> at & 1 == 0 && node.arena.is_active(*reader) {
                let mut next = node.clone();
                next.arena.lose(*reader, *lost);
                next.mistakes |= 1 << at;
                moved |= go_to(next, &mut found, &mut stack);
            }
        }
        for (at, (member, wish)) in scope.wishes.iter().enumerate() {
            if node.wishes >> at & 1 == 0 && node.arena.is_active(*member) {
                let mut next = node.clone();
                match wish {
                    Some(joiner) => next.arena.wish(*member, *joiner),
                    None => next.arena.leave(*member),
                }
                next.wishes |= 1 << at;
                moved |= go_to(next, &mut found, &mut stack);
            }
        }
        if !moved {
            found.ends += 1;
            if let Some(decision) = &node.arena.decision {
                found.decided += 1;
                found.decisions.insert(format!("{decision:?}"));
            }
            if node.mistakes == 0 {
                check_end(&node.arena)?;
            }
        }
    }
    Ok(found)
}

fn step(arena: &mut Arena, rank: usize, scope: &SearchScope) -> Result<(), String> {
    let unsent =
        arena.members[rank].around.parts[0].rounds.is_empty() && scope.senders.contains(&rank);
    let message = if unsent { Some(rank as u64) } else { None };
    arena.step(rank, Time(0), |_| message);
    check(arena, rank)
}

/// Returns every way in which a member can crash in the step that it has just taken.
fn crashes_of(node: &SearchState, rank: usize, before: usize, after: usize) -> Vec<SearchState> {
    let mut ways = Vec::new();
    let readers: Vec<usize> =
        (0..node.arena.members.len()).filter(|reader| *reader != rank).collect();
    // Each reader sees some of the writes, from those already seen to all of them, in every
    // combination. A crash before the step's first write is a crash after the previous step.
    let seen: Vec<usize> =
        readers.iter().map(|reader| node.arena.members[*reader].seen[rank]).collect();
    let mut visible = seen.clone();
    loop {
        let furthest = visible.iter().max().copied().unwrap_or(0);
        if furthest >= before {
            let mut crashed = node.clone();
            crashed.crashes += 1;
            let mut caps = vec![after; node.arena.members.len()];
            for (reader, cap) in readers.iter().zip(&visible) {
                caps[*reader] = *cap;
            }
            crashed.arena.crash(rank, after, &caps);
            ways.push(crashed);
        }
        let Some(at) = visible.iter().position(|cap| *cap < after) else { return ways };
        visible[..at].copy_from_slice(&seen[..at]);
        visible[at] += 1;
    }
}

/// Returns the reports of crashes that are still to come.
fn reports(node: &SearchState, scope: &SearchScope) -> Vec<(usize, usize)> {
    let mut reports = Vec::new();
    for lost in (0..scope.members).filter(|lost| !node.arena.members[*lost].alive) {
        for reader in (0..scope.members).filter(|reader| node.arena.is_active(*reader)) {
            if node.reported >> (reader * scope.members + lost) & 1 == 0 {
                reports.push((reader, lost));
            }
        }
    }
    reports
}

/// Explores a scope that must be correct, and returns its counts.
fn must_hold(name: &str, scope: &SearchScope) -> ExhaustiveCounts {
    let found = explore(scope).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    println!(
        "{name}: {} states, {} transitions, {} crashes, {} ends, {} of them decided, {} different decisions",
        found.states,
        found.transitions,
        found.crashes,
        found.ends,
        found.decided,
        found.decisions.len()
    );
    assert!(found.complete, "{name}: not all of it was explored");
    found
}

#[test]
fn every_single_crash_point_preserves_agreement() {
    let found = must_hold("one crash", &SearchScope { crashes: 1, ..SearchScope::of(3) });
    assert!(found.crashes > 1000 && found.decisions.len() > 3);
}

#[test]
#[ignore = "a whole search, which takes half a minute: .ci/full"]
fn every_pair_of_crash_points_preserves_agreement() {
    let found = must_hold("two crashes", &SearchScope { crashes: 2, ..SearchScope::of(3) });
    assert!(found.crashes > 10_000 && found.decisions.len() > 3);
}

#[test]
fn three_members_agree_when_one_leaves() {
    must_hold("leave", &SearchScope { leavers: vec![1], senders: vec![0], ..SearchScope::of(3) });
}

#[test]
#[ignore = "a whole search, which takes half a minute: .ci/full"]
fn three_members_agree_when_all_leave() {
    let found = must_hold("all leave", &SearchScope { crashes: 0, ..all_leave() });
    assert_eq!(found.ends, found.decided, "each ends");
}

#[test]
fn members_agree_if_two_leave_during_join() {
    must_hold("both leave during a join", &both_leave());
}

/// Returns a scope of two members that leave at any time; one requests a node's join.
pub fn both_leave() -> SearchScope {
    let wishes = vec![(0, None), (1, None), (0, Some(NodeId(20)))];
    SearchScope { wishes, senders: vec![0], ..SearchScope::of(2) }
}

#[test]
#[ignore = "a whole search, which takes half a minute: .ci/full"]
fn members_agree_if_leavers_crash() {
    must_hold("all leave and a crash", &all_leave());
}

/// Returns a scope of three members that leave, one of which crashes.
pub fn all_leave() -> SearchScope {
    SearchScope { leavers: vec![0, 1, 2], senders: vec![0], crashes: 1, ..SearchScope::of(3) }
}

#[test]
#[ignore = "a whole search, which takes half a minute: .ci/full"]
fn members_agree_after_one_leave_and_one_crash() {
    must_hold(
        "leave and crash",
        &SearchScope { leavers: vec![1], senders: vec![0], crashes: 1, ..SearchScope::of(3) },
    );
}

#[test]
fn members_agree_despite_unfounded_loss_reports() {
    let mistaken = must_hold(
        "a mistaken report",
        &SearchScope { mistakes: vec![(1, 0)], ..SearchScope::of(3) },
    );
    let link = must_hold(
        "a link that fails",
        &SearchScope { mistakes: vec![(0, 1), (1, 0)], ..SearchScope::of(3) },
    );
    assert!(mistaken.decided > 0 && link.decided > 0);
}

#[test]
#[ignore = "a whole search, which takes half a minute: .ci/full"]
fn members_agree_despite_unfounded_report_and_crash() {
    let scope =
        SearchScope { mistakes: vec![(2, 0)], crashes: 1, victims: vec![1], ..SearchScope::of(3) };
    must_hold("a mistaken report and a crash", &scope);
}
