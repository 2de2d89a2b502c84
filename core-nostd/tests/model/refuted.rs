//! Models with a planted fault. The checker must find every fault. This shows that it looks where
//! the rules matter, and that its conditions can be violated.

use crate::explorer::{Model, explore};
use crate::{group, trim};

fn must_be_refuted<M: Model>(name: &str, model: &M, says: &str) {
    let Err(refuted) = explore(model) else { panic!("{name}: nothing was found") };
    println!("{name}: {} after {} actions", refuted.what, refuted.actions.len());
    assert!(refuted.what.contains(says), "{name}: {}\n{:#?}", refuted.what, refuted.actions);
}

fn group_is_refuted(scope: group::Scope, fault: group::Fault, says: &str) {
    must_be_refuted(&format!("{fault:?}"), &group::Scope { fault: Some(fault), ..scope }, says);
}

#[test]
fn slot_reused_before_all_have_delivered() {
    let scope = group::Scope::of(2, 1, &[2]);
    group_is_refuted(scope, group::Fault::SlotIsFreeEarly, "overwritten");
}

#[test]
fn nulls_in_a_slot_that_is_not_free() {
    let scope = group::Scope::of(2, 2, &[2, 2]);
    group_is_refuted(scope, group::Fault::NullsWithoutASlot, "overwritten");
}

#[test]
fn position_delivered_before_all_have_it() {
    let scope = group::Scope::of(2, 1, &[1, 1]);
    group_is_refuted(scope, group::Fault::UnstableIsDelivered, "which 1 has not");
}

#[test]
fn one_null_too_many_for_each_message() {
    let scope = group::Scope::of(2, 1, &[1, 1]);
    group_is_refuted(scope, group::Fault::OwedIsOneTooMany, "refuses round");
}

#[test]
fn one_null_too_few() {
    let scope = group::Scope::of(2, 1, &[0, 1]);
    group_is_refuted(scope, group::Fault::OwedIsOneTooFew, "at the end");
}

#[test]
fn previous_lap_mistaken_for_a_new_message() {
    let scope = group::Scope::of(2, 1, &[2]);
    group_is_refuted(scope, group::Fault::LapBeforeIsNew, "refuses round");
}

#[test]
fn frontier_above_the_received_positions() {
    let scope = group::Scope::of(2, 1, &[1, 1]);
    group_is_refuted(scope, group::Fault::FrontierOfTheFurthest, "");
}

#[test]
fn reach_that_ignores_unseen_messages() {
    let scope = group::Scope::of(3, 1, &[1, 1]);
    group_is_refuted(scope, group::Fault::ReachWithoutUnseen, "refuses round");
}

fn trim_is_refuted(fault: trim::Fault, scope: trim::Scope, says: &str) {
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
fn trim_is_the_maximum_instead_of_the_minimum() {
    trim_is_refuted(trim::Fault::TrimIsTheMost, one_crash(), "has not received it");
}

#[test]
fn trim_is_taken_from_a_majoritys_counts() {
    trim_is_refuted(trim::Fault::TrimOfAMajority, wish_and_crash([1, 1, 0]), "has not received it");
}

#[test]
fn member_receives_after_its_final_count() {
    trim_is_refuted(trim::Fault::ReceivesWedged, one_crash(), "and the trim is");
}

#[test]
fn leader_forgets_the_accepted_proposal() {
    trim_is_refuted(trim::Fault::TakeoverForgets, wish_and_crash([0, 1, 1]), "");
}

#[test]
fn leader_decides_without_others_acceptance() {
    trim_is_refuted(trim::Fault::DecidesAlone, wish_and_crash([0, 1, 1]), "two trims");
}

#[test]
fn a_decision_without_a_majority() {
    let scope = trim::Scope { mistakes: vec![(0, 1), (1, 0)], ..trim::Scope::of(2, 1) };
    trim_is_refuted(trim::Fault::NoMajority, scope, "two trims");
}
