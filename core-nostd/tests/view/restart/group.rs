//! A group that restarts: attempts by any of its nodes, deaths during them, and the conditions that
//! must hold.
//!
//! In each turn, some nodes return. If the verdict lets them continue, each participant receives
//! its log, makes its promise durable, and finally notes the decision. All of them may die after
//! any of these actions. A group that continues delivers a message before the next death.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::answers::{Ballot, Disk, Promised, note, with_restart};
use super::disks::{DisksCase, OmittedSync, Store};
use tramontane_core::restart::Verdict;

/// Counts of a search.
#[derive(Clone, Debug, Default)]
pub struct RestartCounts {
    pub cases: usize,
    pub attempts: usize,
    pub waits: usize,
    pub adopted: usize,
    pub cut: usize,
    pub went_on: usize,
}

/// An attempt to restart.
struct RestartAttempt {
    ballot: Ballot,
    base: (u64, Vec<u32>),
    id: u64,
    next: Vec<u32>,
    is_adopted: bool,
    participants: Vec<u32>,
    /// The chosen log.
    log: Vec<(u64, u64)>,
}

/// Restarts from all these cases, with up to `deaths` deaths of all nodes.
pub fn restart_all(
    cases: BTreeSet<DisksCase>,
    deaths: u32,
    fault: OmittedSync,
) -> Result<RestartCounts, String> {
    let mut met = RestartCounts::default();
    let mut known: HashSet<(DisksCase, u32)> = HashSet::new();
    let mut stack: Vec<(DisksCase, u32)> = cases.into_iter().map(|case| (case, deaths)).collect();
    while let Some((case, deaths)) = stack.pop() {
        met.cases += 1;
        let ids: Vec<u32> = case.nodes.keys().copied().collect();
        for come in 1..1_u32 << ids.len() {
            let here: Vec<u32> = ids
                .iter()
                .enumerate()
                .filter(|(at, _)| come >> at & 1 == 1)
                .map(|n| *n.1)
                .collect();
            for (after, lives) in turn(&case, &here, deaths, fault, &mut met)? {
                let left = if lives { deaths } else { deaths - 1 };
                if known.insert((after.clone(), left)) {
                    stack.push((after, left));
                }
            }
        }
    }
    Ok(met)
}

/// Returns the cases that result when these nodes return, each with whether the nodes are still
/// alive.
fn turn(
    case: &DisksCase,
    here: &[u32],
    deaths: u32,
    fault: OmittedSync,
    met: &mut RestartCounts,
) -> Result<Vec<(DisksCase, bool)>, String> {
    let Some(attempt) = attempt_of(case, here, fault)? else {
        met.waits += 1;
        return Ok(Vec::new());
    };
    met.attempts += 1;
    met.adopted += usize::from(attempt.is_adopted);
    let mut after = Vec::new();
    let count = attempt.participants.len() as u32;
    let mut heard = case.clone();
    if fault != OmittedSync::HeardNotNoted {
        for way in 1..1_u32 << count {
            heard = case.clone();
            let noting = attempt.participants.iter().enumerate();
            for (_, node) in noting.filter(|(at, _)| way >> at & 1 == 1) {
                heard.nodes.get_mut(node).expect("a participant").heard = attempt.ballot;
            }
            if deaths > 0 {
                after.push((heard.clone(), false));
            }
        }
    }
    // All nodes have heard of the attempt. In addition, each participant has completed nothing, its
    // log, or its log and its promise.
    let ways = 3_u32.pow(count);
    for way in 0..ways {
        let mut changed = heard.clone();
        for (at, node) in attempt.participants.iter().enumerate() {
            let far = way / 3_u32.pow(at as u32) % 3;
            let store = changed.nodes.get_mut(node).expect("a participant");
            if far > 0 {
                met.cut += usize::from(take_log(store, &attempt, *node, fault));
            }
            if far > 1 && fault != OmittedSync::RestartNotPromised {
                store.promise = Some(attempt.promise());
                if fault != OmittedSync::BaseNotNoted {
                    store.decided = Some(attempt.base.clone());
                }
                let end = store.records.as_ref().map_or(0, |records| records.len() as u64);
                store.note = note(end, 0, 0);
            }
        }
        if way + 1 == ways {
            after.extend(decide(&changed, &attempt, deaths, met)?);
        } else if deaths > 0 {
            after.push((changed, false));
        }
    }
    Ok(after)
}

impl RestartAttempt {
    fn promise(&self) -> Promised {
        let (ballot, id, members) = (self.ballot, self.id, self.next.clone());
        Promised { ballot, id, members, ends: vec![Some(self.log.len() as u64)] }
    }
}

/// Returns the attempt that these nodes may make, or `None` if they must wait.
fn attempt_of(
    case: &DisksCase,
    here: &[u32],
    fault: OmittedSync,
) -> Result<Option<RestartAttempt>, String> {
    let disks: Vec<(u32, Disk)> =
        here.iter().map(|node| (*node, case.nodes[node].disk())).collect();
    let lent: Vec<(u32, &Disk)> = disks.iter().map(|(node, disk)| (*node, disk)).collect();
    let subgroup: Vec<u32> = case.nodes.keys().copied().collect();
    with_restart(&lent, &[subgroup], |restart| {
        let plan = match restart.verdict() {
            Verdict::Go(plan) => plan,
            Verdict::Wait(wait) => {
                let missing: Vec<u32> = restart.missing(wait).map(|node| node.0).collect();
                // The verdict names the nodes that it waits for, but no nodes that can add nothing.
                if missing.is_empty() && fault != OmittedSync::DisksChanged {
                    return Err(format!("{here:?} wait for nobody: {wait:?}, {case:?}"));
                }
                return Ok(None);
            }
            Verdict::NoGroup => return Ok(None),
        };
        // DUR-12: otherwise no node would begin the next view.
        if restart.next_members(&plan).next().is_none() {
            return Err(format!("{here:?} go on with nobody: {case:?}"));
        }
        let taken = restart.log_of(&plan, 0).map_err(|lost| format!("{lost} is lost"))?;
        let log = taken.map_or(Vec::new(), |taken| {
            let records = case.nodes[&taken.node.0].records.clone().unwrap_or_default();
            records[..taken.end.end.0 as usize].to_vec()
        });
        Ok(Some(RestartAttempt {
            ballot: (plan.attempt, here[0]),
            base: (plan.base.id.0, plan.base.members.iter().map(|node| node.0).collect()),
            id: plan.next_id().0,
            next: restart.next_members(&plan).map(|node| node.0).collect(),
            is_adopted: plan.adopted.is_some(),
            participants: restart.participants(&plan).map(|node| node.0).collect(),
            log,
        }))
    })
}

/// Makes a continuing participant set aside the records that the chosen log lacks, and copy the
/// other records. Returns whether there was anything to set aside.
fn take_log(store: &mut Store, attempt: &RestartAttempt, node: u32, fault: OmittedSync) -> bool {
    if !attempt.next.contains(&node) {
        return false;
    }
    let own = store.records.get_or_insert_default();
    let last_view = own.last().map_or(0, |record| record.0);
    // The end of the view to which the log's last record belongs.
    let end = attempt.log.iter().position(|record| record.0 > last_view);
    let common = own.len().min(end.unwrap_or(attempt.log.len()));
    let is_cut = common < own.len();
    store.note.end.0 = store.note.end.0.min(common as u64);
    if fault != OmittedSync::TailReplayed {
        own.truncate(common);
    }
    let from = own.len().min(attempt.log.len());
    own.extend_from_slice(&attempt.log[from..]);
    is_cut
}

/// Decides the next view, because all participants have promised. Some of them note the decision;
/// if the view was not adopted, it continues once all of its members have noted the decision.
fn decide(
    case: &DisksCase,
    attempt: &RestartAttempt,
    deaths: u32,
    met: &mut RestartCounts,
) -> Result<Vec<(DisksCase, bool)>, String> {
    let mut case = case.clone();
    let messages: Vec<u64> = attempt.log.iter().map(|record| record.1).collect();
    check(&case, attempt, &messages)?;
    case.decided.insert(attempt.id, (attempt.next.clone(), messages));
    let mut after = Vec::new();
    let noting: Vec<u32> =
        attempt.participants.iter().copied().filter(|node| attempt.next.contains(node)).collect();
    for way in 0..1_u32 << noting.len() {
        let mut noted = case.clone();
        for (_, node) in noting.iter().enumerate().filter(|(at, _)| way >> at & 1 == 1) {
            let store = noted.nodes.get_mut(node).expect("a participant");
            store.decided = Some((attempt.id, attempt.next.clone()));
        }
        let all = way + 1 == 1 << noting.len();
        if all && attempt.is_adopted {
            // The same nodes continue from this case, without a death.
            after.push((noted.clone(), true));
        }
        if all && !attempt.is_adopted && noting.len() == attempt.next.len() {
            met.went_on += 1;
            if deaths > 0 {
                after.extend(goes_on(&noted, attempt).into_iter().map(|case| (case, false)));
            }
        }
        if deaths > 0 {
            after.push((noted, false));
        }
    }
    Ok(after)
}

/// Lets the group deliver a message in its new view, which any of its members may have on disk.
fn goes_on(case: &DisksCase, attempt: &RestartAttempt) -> Vec<DisksCase> {
    let message = attempt.id * 1000;
    let ways = 1..1_u32 << attempt.next.len();
    ways.map(|way| {
        let mut case = case.clone();
        let has = attempt.next.iter().enumerate().filter(|(at, _)| way >> at & 1 == 1);
        let has: Vec<u32> = has.map(|(_, node)| *node).collect();
        for node in &has {
            let store = case.nodes.get_mut(node).expect("a member");
            store.records.get_or_insert_default().push((attempt.id, message));
        }
        if has.len() * 2 > attempt.next.len() {
            case.reported = attempt.log.iter().map(|record| record.1).collect();
            case.reported.push(message);
        }
        case
    })
    .collect()
}

/// Checks the conditions for a restart's decision.
fn check(case: &DisksCase, attempt: &RestartAttempt, messages: &[u64]) -> Result<(), String> {
    let says = |what: &str| {
        Err(format!(
            "{what}: view {} of {:?} with {messages:?}: {case:?}",
            attempt.id, attempt.next
        ))
    };
    if let Some((members, before)) = case.decided.get(&attempt.id) {
        if *members != attempt.next {
            return says("another view of this id was decided");
        }
        if before != messages {
            return says("the view before ended elsewhere");
        }
    }
    if case.decided.keys().any(|id| *id > attempt.id) {
        return says("a later view was decided");
    }
    if !messages.starts_with(&case.reported) {
        return says("what was durable at a majority is lost");
    }
    let before: &BTreeMap<_, _> = &case.decided;
    let began = before.get(&(attempt.id - 1)).map(|view| &view.1);
    if began.is_some_and(|began| !messages.starts_with(began)) {
        return says("what its view began with is lost");
    }
    for node in attempt.participants.iter().filter(|node| attempt.next.contains(node)) {
        let has = case.nodes[node].records.iter().flatten().map(|record| record.1);
        if !has.eq(messages.iter().copied()) {
            return says(&format!("{node} has another log"));
        }
    }
    Ok(())
}
