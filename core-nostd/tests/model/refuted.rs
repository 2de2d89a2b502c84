//! Models with a planted fault. The checker must find every fault. This shows that it looks where
//! the rules matter, and that its conditions can be violated.

use crate::explorer::{Model, explore};
use crate::{group, trim};

fn must_be_refuted<M: Model>(name: &str, model: &M, says: &str) {
    let Err(refuted) = explore(model) else { panic!("{name}: nothing was found") };
    println!("{name}: {} after {} actions", refuted.what, refuted.actions.len());
    assert!(refuted.what.contains(says), "{name}: {}\n{:#?}", refuted.what, refuted.actions);
}

fn group_is_refuted(scope: group::Scope, fault: group::GroupBug, says: &str) {
    must_be_refuted(&format!("{fault:?}"), &group::Scope { fault: Some(fault), ..scope }, says);
}

#[test]
fn early_slot_reuse_is_refuted() {
    let scope = group::Scope::of(2, 1, &[2]);
    group_is_refuted(scope, group::GroupBug::SlotIsFreeEarly, "overwritten");
}

#[test]
fn null_sent_in_an_occupied_slot_is_refuted() {
    let scope = group::Scope::of(2, 2, &[2, 2]);
    group_is_refuted(scope, group::GroupBug::NullsWithoutASlot, "overwritten");
}

#[test]
fn unstable_delivery_is_refuted() {
    let scope = group::Scope::of(2, 1, &[1, 1]);
    group_is_refuted(scope, group::GroupBug::UnstableIsDelivered, "which 1 has not");
}

#[test]
fn excess_null_is_refuted() {
    let scope = group::Scope::of(2, 1, &[1, 1]);
    group_is_refuted(scope, group::GroupBug::OwedIsOneTooMany, "refuses round");
}

#[test]
fn completing_a_later_round_is_refuted() {
    let scope = group::Scope::completing(2, 1, &[1, 1]);
    group_is_refuted(scope, group::GroupBug::CompletesOneTooMany, "refuses round");
}

#[test]
fn missing_null_is_refuted() {
    let scope = group::Scope::of(2, 1, &[0, 1]);
    group_is_refuted(scope, group::GroupBug::OwedIsOneTooFew, "at the end");
}

#[test]
fn reading_the_previous_lap_as_new_is_refuted() {
    let scope = group::Scope::of(2, 1, &[2]);
    group_is_refuted(scope, group::GroupBug::LapBeforeIsNew, "refuses round");
}

#[test]
fn frontier_above_received_positions_is_refuted() {
    let scope = group::Scope::of(2, 1, &[1, 1]);
    group_is_refuted(scope, group::GroupBug::FrontierOfTheFurthest, "");
}

#[test]
fn ignoring_unseen_messages_in_round_limit_is_refuted() {
    let scope = group::Scope::of(3, 1, &[1, 1]);
    group_is_refuted(scope, group::GroupBug::ReachWithoutUnseen, "refuses round");
}

fn trim_is_refuted(fault: trim::TrimBug, scope: trim::Scope, says: &str) {
    must_be_refuted(&format!("{fault:?}"), &trim::Scope { fault: Some(fault), ..scope }, says);
}

/// Returns a view of three members, one of which crashes; `exhausted` explores this view without a
/// fault.
fn one_crash() -> trim::Scope {
    trim::Scope { crashes: 1, ..trim::Scope::of(3, 1) }
}

/// Returns a view of three members that is to end and in which one member crashes. `received` gives
/// the number of positions that each member has at the start. `exhausted` explores this view too.
fn wish_and_crash(received: [u8; 3]) -> trim::Scope {
    trim::Scope { wish: true, received, ..one_crash() }
}

#[test]
fn taking_the_maximum_as_trim_is_refuted() {
    trim_is_refuted(trim::TrimBug::TrimIsTheMost, one_crash(), "has not received it");
}

#[test]
fn computing_trim_from_a_majority_is_refuted() {
    trim_is_refuted(
        trim::TrimBug::TrimOfAMajority,
        wish_and_crash([1, 1, 0]),
        "has not received it",
    );
}

#[test]
fn receiving_after_the_final_count_is_refuted() {
    trim_is_refuted(trim::TrimBug::ReceivesWedged, one_crash(), "and the trim is");
}

#[test]
fn forgetting_an_accepted_proposal_is_refuted() {
    trim_is_refuted(trim::TrimBug::TakeoverForgets, wish_and_crash([0, 1, 1]), "");
}

#[test]
fn deciding_without_others_acceptance_is_refuted() {
    trim_is_refuted(trim::TrimBug::DecidesAlone, wish_and_crash([0, 1, 1]), "two trims");
}

#[test]
fn deciding_without_a_majority_is_refuted() {
    let scope = trim::Scope { mistakes: vec![(0, 1), (1, 0)], ..trim::Scope::of(2, 1) };
    trim_is_refuted(trim::TrimBug::NoMajority, scope, "two trims");
}
