//! The states of the disks that a view change can leave behind, and every order of restarts from
//! them. An ordinary run tries some of the states; `TRAMONTANE_POINTS=all` tries all.

use std::collections::BTreeSet;

use super::changed::{Change, changed, forgetting, noting};
use super::disks::{DisksCase, OmittedSync, cases_of};
use super::group::{RestartCounts, restart_all};
use crate::exhaustive::{ExhaustiveCounts, SearchScope, all_leave, both_leave, explore_each};
use tramontane_core::ids::NodeId;

/// Returns all the states that a scope can leave on disk.
fn left_by(
    scope: &SearchScope,
    fault: OmittedSync,
) -> Result<(ExhaustiveCounts, BTreeSet<DisksCase>), String> {
    let scope = SearchScope { keeps_promises: true, ..scope.clone() };
    let joiners: Vec<NodeId> = scope.wishes.iter().filter_map(|(_, node)| *node).collect();
    let mut cases = BTreeSet::new();
    let found = explore_each(&scope, |arena| cases.extend(cases_of(arena, &joiners, fault)))?;
    Ok((found, cases))
}

/// An ordinary run tries the first of each group of this many states.
const SHARE: usize = 8;

/// Returns the states that this run tries.
fn tried(cases: BTreeSet<DisksCase>) -> BTreeSet<DisksCase> {
    let is_whole = std::env::var("TRAMONTANE_POINTS").is_ok_and(|points| points == "all");
    cases.into_iter().step_by(if is_whole { 1 } else { SHARE }).collect()
}

fn must_hold(name: &str, scope: &SearchScope, deaths: u32) -> RestartCounts {
    let (found, cases) =
        left_by(scope, OmittedSync::None).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    let cases = tried(cases);
    let disks = cases.len();
    let met = restart_all(cases, deaths, OmittedSync::None)
        .unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    println!("{name}: {} states leave {disks} different disks; {met:?}", found.states);
    met
}

fn one_crash() -> SearchScope {
    SearchScope { crashes: 1, ..SearchScope::of(3) }
}

/// Returns a scope of two members, one of which leaves; each requests a node's join.
fn joins() -> SearchScope {
    let wishes = vec![(0, Some(NodeId(20))), (1, Some(NodeId(21))), (1, None)];
    SearchScope { wishes, senders: vec![0], ..SearchScope::of(2) }
}

#[test]
fn deaths_during_change_and_restart_lose_nothing_durable() {
    let met = must_hold("a crash and a total restart", &one_crash(), 1);
    assert!(met.adopted > 0 && met.waits > 0 && met.went_on > 0);
}

#[test]
fn deaths_during_change_with_joins_lose_nothing_durable() {
    let met = must_hold("joins and a total restart", &joins(), 1);
    assert!(met.adopted > 0 && met.waits > 0 && met.went_on > 0);
}

/// DUR-12: the group can be restarted from the disks that are left behind.
#[test]
fn restart_after_all_leave_loses_nothing_durable() {
    let met = must_hold("both leave during a join, and a total restart", &both_leave(), 1);
    assert!(met.adopted > 0 && met.waits > 0 && met.went_on > 0);
}

/// A minority of the disks, or more, have changed: the group continues with everything that was
/// durable at a majority, or waits.
#[test]
fn changed_disks_never_lose_durable_messages() {
    let (_, cases) = left_by(&one_crash(), OmittedSync::None).expect("views hold");
    let cases: Vec<DisksCase> = tried(cases).iter().map(noting).collect();
    let ids: Vec<u32> = cases[0].nodes.keys().copied().collect();
    let one: Vec<&[u32]> = ids.chunks(1).collect();
    let any = [one.clone(), ids.windows(2).collect(), vec![&ids[..]]].concat();
    for (change, nodes) in
        [(Change::Emptied, &any), (Change::Shortened, &any), (Change::Older, &one)]
    {
        let changed: BTreeSet<DisksCase> = cases
            .iter()
            .flat_map(|case| nodes.iter().filter_map(|nodes| changed(case, nodes, change)))
            .collect();
        let disks = changed.len();
        let found = restart_all(forgetting(&changed), 0, OmittedSync::DisksChanged);
        println!("{change:?}: {}", found.as_ref().err().map_or("not found", String::as_str));
        assert!(found.is_err(), "{change:?}: without notes something is lost");
        let met = restart_all(changed, 1, OmittedSync::DisksChanged)
            .unwrap_or_else(|wrong| panic!("{change:?}: {wrong}"));
        println!("{change:?}: {disks} different disks; {met:?}");
        assert!(met.waits > 0 && met.went_on > 0, "{change:?}");
    }
}

#[test]
#[ignore = "a whole search, which takes minutes: .ci/full"]
fn repeated_deaths_during_restarts_lose_nothing_durable() {
    for (name, scope) in [("a crash", one_crash()), ("joins", joins())] {
        let met = must_hold(name, &scope, 2);
        assert!(met.adopted > 0 && met.cut > 0 && met.waits > 0 && met.went_on > 0);
    }
    // Members that leave together have equal logs, so none is cut.
    let met = must_hold("all leave", &all_leave(), 2);
    assert!(met.adopted > 0 && met.waits > 0 && met.went_on > 0);
}

#[test]
#[ignore = "whole searches, which take a minute: .ci/full"]
fn search_detects_each_omitted_sync() {
    use OmittedSync::{
        BaseNotNoted, DecisionNotSynced, HeardNotNoted, LogNotSynced, RestartNotPromised,
        StateNotSynced,
    };
    let faults = [
        (LogNotSynced, one_crash()),
        (DecisionNotSynced, one_crash()),
        (StateNotSynced, joins()),
        (RestartNotPromised, one_crash()),
        (BaseNotNoted, one_crash()),
        (HeardNotNoted, one_crash()),
    ];
    for (fault, scope) in faults {
        let (_, cases) = left_by(&scope, fault).expect("views hold");
        let found = restart_all(cases, 2, fault);
        println!("{fault:?}: {}", found.as_ref().err().map_or("not found", String::as_str));
        assert!(found.is_err(), "{fault:?} is not found");
    }
}
