//! What a simulated group with a changing membership did, as a history, and what is wrong with it.
//!
//! A process is node `n5` with its life as `inc`; subgroups are groups `g0`, `g1`, ... The views of a group are those of
//! the whole membership: a majority of those is asked for, and not of a subgroup's members. So every member records
//! them for all groups.

pub mod failure;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tramontane_conformance::check::{CheckId, Finding, Judge, Outcome as CheckOutcome};
use tramontane_conformance::history::{EndReason, Event, FaultKind, GroupOrder};
use tramontane_core::ids::NodeId;
use tramontane_fixtures::membership::{Deed, Ending, Outcome, Plan, Record, Recorded};

/// What one group did, which was formed before the first of these records: groups first, then the records in their order.
fn events(plan: &Plan, outcome: &Outcome, records: &[Recorded]) -> Vec<Event<'static>> {
    let groups = (0..plan.subgroups.len()).map(|index| group(plan, index));
    groups.chain(records.iter().flat_map(|recorded| told(plan, outcome, recorded))).collect()
}

fn group(plan: &Plan, index: usize) -> Event<'static> {
    let subgroup = &plan.subgroups[index];
    let names = |nodes: &BTreeSet<NodeId>| nodes.iter().map(|node| node_name(*node)).collect();
    Event::Group {
        group: group_name(index),
        members: names(&subgroup.members),
        senders: names(&subgroup.senders),
        // Subgroups know nothing of each other.
        order: GroupOrder::Group,
    }
}

fn told(plan: &Plan, outcome: &Outcome, recorded: &Recorded) -> Vec<Event<'static>> {
    let t_ns = recorded.at;
    let who = |process: usize| {
        let name = outcome.history.processes[process];
        (node_name(name.node), name.life)
    };
    let fault = |kind, nodes| vec![Event::Fault { t_ns, kind, nodes }];
    let end = |process: usize, reason| {
        let (node, inc) = who(process);
        vec![Event::End { t_ns, node, inc, reason }]
    };
    match &recorded.record {
        Record::Start { process } => {
            let (node, inc) = who(*process);
            vec![Event::Start { t_ns, node, inc }]
        }
        Record::View { process, view, members } => {
            let (node, inc) = who(*process);
            let members: Vec<Cow<'static, str>> =
                members.iter().map(|node| node_name(*node)).collect();
            let in_group = |index| Event::View {
                t_ns,
                node: node.clone(),
                inc,
                group: group_name(index),
                view: view.0,
                members: members.clone(),
            };
            (0..plan.subgroups.len()).map(in_group).collect()
        }
        Record::Multicast { process, subgroup, index, bytes, .. } => {
            let (node, inc) = who(*process);
            vec![Event::Multicast {
                t_ns,
                node,
                inc,
                msg: message(outcome, *process, *subgroup, *index),
                groups: vec![group_name(*subgroup)],
                bytes: Some(*bytes as u64),
                digest: None,
            }]
        }
        Record::Deliver { process, view, subgroup, sender, author, index, bytes, intact } => {
            let (node, inc) = who(*process);
            // What is not as it was written is nobody's message.
            let known = *intact && *author < outcome.history.processes.len();
            vec![Event::Deliver {
                t_ns,
                node,
                inc,
                group: group_name(*subgroup),
                view: Some(view.0),
                msg: known.then(|| message(outcome, *author, *subgroup, *index)),
                sender: Some(who(*sender).0),
                bytes: Some(*bytes as u64),
                digest: None,
                replayed: false,
            }]
        }
        Record::Crash { process } => fault(FaultKind::Kill, vec![who(*process).0]),
        Record::Stop { process } => fault(FaultKind::Stop, vec![who(*process).0]),
        Record::Continue { process } => fault(FaultKind::Continue, vec![who(*process).0]),
        Record::Partition { side } => fault(FaultKind::Partition, names(side)),
        Record::Heal { side } => fault(FaultKind::Heal, names(side)),
        Record::AskedToLeave { .. } | Record::State { .. } | Record::Formed { .. } => Vec::new(),
        Record::Left { process } => end(*process, EndReason::Left),
        Record::Halted { process } => end(*process, EndReason::Halted),
        Record::Done { process } => end(*process, EndReason::Done),
    }
}

/// Everything that is wrong with a run. The first words of each say what kind of wrong it is.
pub fn complaints(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let mut complaints: Vec<String> = two_groups(outcome).into_iter().collect();
    complaints.extend(outcome.complaints.iter().cloned());
    // A group that was formed anew has nothing of the one before: each has a history of its own.
    let is_forming = |recorded: &Recorded| matches!(recorded.record, Record::Formed { .. });
    for records in outcome.history.records.split(is_forming) {
        let mut judge = Judge::new();
        for (line, event) in (1..).zip(&events(plan, outcome, records)) {
            if let Err(error) = judge.take(line, event) {
                complaints.push(format!("no history: {error}"));
                return complaints;
            }
        }
        let verdict = judge.finish();
        complaints.extend(verdict.judgements.iter().filter_map(
            |judgement| match &judgement.outcome {
                CheckOutcome::Broken { finding, .. }
                    if !is_excused(plan, outcome, judgement.check, finding) =>
                {
                    Some(format!("{}: {}", judgement.check, finding.what))
                }
                _ => None,
            },
        ));
        complaints.extend(missed(outcome, records));
    }
    complaints.extend(lost(outcome));
    if outcome.ending == Ending::NoGroup && plan.must_go_on() {
        complaints.push("no group: most members were left alone, and none goes on".to_owned());
    }
    complaints
}

/// What the checker says of members that give up, where [`Plan::must_go_on`] says it better. It asks each group to go on
/// while a majority of all nodes that may be its members stands, and here the views are those of the whole membership.
/// And it takes a history without faults for one without cause to give up, but knows neither full queues nor slow
/// processes nor joiners that never come, nor a group that all leave at once.
fn is_excused(plan: &Plan, outcome: &Outcome, check: CheckId, finding: &Finding) -> bool {
    let only = |role: &str| finding.witness.iter().all(|witness| witness.role == role);
    let calm =
        plan.must_go_on() && plan.deeds.iter().all(|deed| matches!(deed, Deed::Leave { .. }));
    check == CheckId::Liveness
        && (only("one of the majority gives up") || only("it gave up") && !calm)
        || check == CheckId::ViewMajority && keeps_majorities(outcome)
}

/// Whether each view has a majority of the one before, those included that left or were about to. The checker counts
/// only those that ended as left; a leaver that crashed after it had agreed to the view without it had agreed all the same.
fn keeps_majorities(outcome: &Outcome) -> bool {
    let mut leaving: BTreeSet<NodeId> = BTreeSet::new();
    let mut last: BTreeMap<usize, &[NodeId]> = BTreeMap::new();
    outcome.history.records.iter().all(|recorded| match &recorded.record {
        Record::AskedToLeave { process } => {
            leaving.insert(outcome.history.processes[*process].node);
            true
        }
        Record::View { process, members, .. } => {
            let before = last.insert(*process, members).unwrap_or(members);
            let kept = before
                .iter()
                .filter(|node| members.contains(node) || leaving.contains(node))
                .count();
            kept * 2 > before.len()
        }
        _ => true,
    })
}

/// A process of an earlier group that still installs a view or delivers once another group was formed.
fn two_groups(outcome: &Outcome) -> Option<String> {
    let records = &outcome.history.records;
    let formed =
        records.iter().enumerate().filter(|(_, one)| matches!(one.record, Record::Formed { .. }));
    formed.map(|(place, _)| records.split_at(place)).find_map(|(before, after)| {
        let started = |process: usize| {
            before
                .iter()
                .any(|one| matches!(one.record, Record::Start { process: one } if one == process))
        };
        let goes_on = after.iter().find_map(|one| match one.record {
            Record::View { process, .. } | Record::Deliver { process, .. } if started(process) => {
                Some(process)
            }
            _ => None,
        })?;
        let node = node_name(outcome.history.processes[goes_on].node);
        Some(format!("two groups: {node} goes on in a group, and another was formed"))
    })
}

/// A joiner that entered a view with other messages of a subgroup than those that were there: all that enter a view have the
/// same of each subgroup that they are in.
fn missed(outcome: &Outcome, records: &[Recorded]) -> Option<String> {
    /// A process, and how many messages of each sender it has.
    type Had<'r> = (usize, &'r [(usize, u64)]);
    let mut known: BTreeMap<(u64, usize), Had<'_>> = BTreeMap::new();
    records.iter().find_map(|recorded| {
        let Record::State { process, view, subgroup, messages } = &recorded.record else {
            return None;
        };
        let (other, had) = *known.entry((view.0, *subgroup)).or_insert((*process, messages));
        let name = |process: usize| node_name(outcome.history.processes[process].node);
        (had != messages).then(|| {
            format!(
                "state: {} entered view {view} with {} messages of g{subgroup}, and {} with {}",
                name(*process),
                messages.len(),
                name(other),
                had.len()
            )
        })
    })
}

/// What a member sent that was there to the end, and did not deliver itself.
fn lost(outcome: &Outcome) -> Option<String> {
    let records = || outcome.history.records.iter().map(|recorded| &recorded.record);
    let own = |record: &Record| match record {
        Record::Deliver { process, author, subgroup, index, .. } if process == author => {
            Some((*process, *subgroup, *index))
        }
        _ => None,
    };
    let done: BTreeSet<usize> = records()
        .filter_map(|record| match record {
            Record::Done { process } => Some(*process),
            _ => None,
        })
        .collect();
    let delivered: BTreeSet<(usize, usize, u64)> = records().filter_map(own).collect();
    records().find_map(|record| match record {
        Record::Multicast { process, subgroup, index, .. }
            if done.contains(process) && !delivered.contains(&(*process, *subgroup, *index)) =>
        {
            Some(format!("lost: {}", message(outcome, *process, *subgroup, *index)))
        }
        _ => None,
    })
}

fn names(nodes: &[NodeId]) -> Vec<Cow<'static, str>> {
    nodes.iter().map(|node| node_name(*node)).collect()
}

fn node_name(node: NodeId) -> Cow<'static, str> {
    Cow::Owned(format!("n{node}"))
}

fn group_name(subgroup: usize) -> Cow<'static, str> {
    Cow::Owned(format!("g{subgroup}"))
}

fn message(outcome: &Outcome, process: usize, subgroup: usize, index: u64) -> Cow<'static, str> {
    let name = outcome.history.processes[process];
    Cow::Owned(format!("n{}.{}/g{subgroup}/{index}", name.node, name.life))
}
