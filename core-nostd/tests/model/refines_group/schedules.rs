//! Every schedule of a small group. Because a node cannot be copied, each schedule is run from its
//! start. If two schedules reach the same state, only one of them is continued.

use std::collections::HashSet;

use tramontane_core::fabric::Promises;
use tramontane_core::node::Options;

use super::GroupPair;
use super::nodes::{NodeAction, Setup, with_nodes};
use crate::explorer::Model;
use crate::group::{Action, GroupState, Scope};

/// Counts of a search.
#[derive(Debug, Default)]
struct ScheduleCounts {
    states: usize,
    transitions: usize,
    /// Distinct states of the model.
    abstract_states: HashSet<GroupState>,
    actions: usize,
    /// Number of node steps that correspond to no action of the model, and to several.
    none: usize,
    several: usize,
    ends: usize,
    nulls: usize,
    completed: usize,
}

/// The result of a schedule: the model's state, the actions of the last step, a fingerprint, and
/// whether this is an end.
type ScheduleResult = (GroupState, Vec<Action>, u64, bool);

/// Runs a schedule and compares only its last step; `before` is the model's state before that step.
fn run(
    scope: &Scope,
    setup: Setup,
    schedule: &[NodeAction],
    last: NodeAction,
    before: &GroupState,
) -> Result<Option<ScheduleResult>, String> {
    with_nodes(scope, setup, |nodes| {
        for what in schedule {
            nodes.act(*what)?;
        }
        let mut pair = GroupPair { scope, nodes, state: before.clone() };
        let Some(actions) = pair.follow(last)? else { return Ok(None) };
        let (state, done) = (pair.state.clone(), pair.nodes.is_committed());
        Ok(Some((state, actions, pair.nodes.fingerprint(), done)))
    })
}

fn every_schedule(scope: &Scope, setup: Setup) -> Result<ScheduleCounts, String> {
    let mut all = Vec::new();
    for member in 0..scope.members {
        all.push(NodeAction::Step { member, commits: false });
        all.push(NodeAction::Step { member, commits: true });
        let others = (0..scope.members).filter(|writer| *writer != member);
        all.extend(others.map(|writer| NodeAction::Land { reader: member, writer }));
    }
    let mut met = ScheduleCounts::default();
    let start = scope.start();
    let first = with_nodes(scope, setup, |nodes| nodes.fingerprint());
    let mut known = HashSet::from([first]);
    let mut open = vec![(Vec::new(), start, first, false)];
    while let Some((schedule, state, own, done)) = open.pop() {
        met.states += 1;
        let mut moved = false;
        for last in &all {
            let said = |wrong| format!("{wrong}\nafter {schedule:?} and {last:?}");
            let Some((next, actions, print, committed)) =
                run(scope, setup, &schedule, *last, &state).map_err(said)?
            else {
                continue;
            };
            met.transitions += 1;
            met.actions += actions.len();
            met.none += usize::from(actions.is_empty());
            met.several += usize::from(actions.len() > 1);
            met.nulls += actions.iter().filter(|it| matches!(it, Action::Null(_))).count();
            met.completed += actions.iter().filter(|it| matches!(it, Action::Complete(_))).count();
            moved |= print != own;
            if known.insert(print) {
                let mut schedule = schedule.clone();
                schedule.push(*last);
                open.push((schedule, next, print, committed));
            }
        }
        if !moved && done {
            met.ends += 1;
            scope.check_end(&state)?;
        }
        met.abstract_states.insert(state);
    }
    Ok(met)
}

fn must_refine(scope: &Scope, setup: Setup) -> ScheduleCounts {
    let began = std::time::Instant::now();
    let met = every_schedule(scope, setup).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!(
        "{scope:?}: {} states of nodes, {} of the model, {} steps and landings, {} actions; {} steps \
         were none and {} several; {} ends, {} nulls, {} rounds completed; {:.1} s",
        met.states,
        met.abstract_states.len(),
        met.transitions,
        met.actions,
        met.none,
        met.several,
        met.ends,
        met.nulls,
        met.completed,
        began.elapsed().as_secs_f64()
    );
    assert!(met.ends > 0 && met.several > 0, "{met:?}");
    met
}

fn setup() -> Setup {
    Setup { options: Options::default(), promises: Promises::ADDRESS_ORDER | Promises::WRITE_ORDER }
}

#[test]
fn two_members_match_model_with_one_sender() {
    must_refine(&Scope::of(2, 1, &[2]), setup());
    must_refine(&Scope::of(2, 2, &[3]), setup());
}

#[test]
fn two_members_match_model_if_one_lags() {
    let met = must_refine(&Scope::of(2, 1, &[0, 2]), setup());
    assert!(met.nulls > 0);
}

#[test]
fn two_members_match_model_if_one_completes_rounds() {
    let met = must_refine(&Scope::completing(2, 2, &[4, 0]), setup());
    assert!(met.nulls > 0 && met.completed > 0);
}

#[test]
fn two_members_match_model_if_both_send() {
    must_refine(&Scope::of(2, 1, &[1, 1]), setup());
}

#[test]
fn three_members_match_model_with_one_sender() {
    must_refine(&Scope::of(3, 1, &[1]), setup());
}

#[test]
#[ignore = "whole searches, which take a minute: .ci/full"]
fn two_members_match_model_when_rings_wrap() {
    must_refine(&Scope::of(2, 1, &[2, 2]), setup());
    must_refine(&Scope::of(2, 2, &[3, 1]), setup());
}
