//! All states of the models, up to a size.

use crate::explorer::{Model, SearchCounts, explore};
use crate::{group, trim};

/// SAFETY: the model checks accesses to the slots, because loom itself reports any access that is
/// not ordered.
fn exhaust<M: Model>(name: &str, model: &M) -> SearchCounts {
    let began = std::time::Instant::now();
    let found = explore(model)
        .unwrap_or_else(|refuted| panic!("{name}: {}\n{:#?}", refuted.what, refuted.actions));
    let SearchCounts { states, transitions, ends, depth } = found;
    println!(
        "{name}: {states} states, {transitions} transitions, {ends} ends, {depth} actions deep, \
         {:.1} s",
        began.elapsed().as_secs_f64()
    );
    found
}

/// If the number of states differs, the model has changed.
fn exhaust_group(members: usize, window: usize, messages: &[u8], states: usize) {
    let name = format!("group, {members} members, window {window}, messages {messages:?}");
    let found = exhaust(&name, &group::Scope::of(members, window, messages));
    assert_eq!(found.states, states, "{name}");
}

#[test]
fn model_with_one_sender_violates_no_condition() {
    exhaust_group(2, 1, &[2], 69);
    exhaust_group(2, 2, &[3], 1_086);
    exhaust_group(3, 1, &[2], 2_588);
}

#[test]
fn model_with_two_senders_violates_no_condition() {
    exhaust_group(2, 1, &[1, 1], 1_426);
    exhaust_group(2, 1, &[2, 1], 2_948);
    exhaust_group(2, 2, &[2, 1], 23_534);
    exhaust_group(3, 1, &[1, 0], 499);
}

#[test]
fn model_with_completed_rounds_violates_no_condition() {
    let sizes = [(2, &[2, 0]), (2, &[1, 1]), (2, &[2, 1]), (3, &[1, 0])];
    let states = sizes.map(|(members, messages)| {
        let name = format!("group that completes rounds, {members} members, {messages:?}");
        exhaust(&name, &group::Scope::completing(members, 1, messages)).states
    });
    assert_eq!(states, [2_962, 3_490, 26_512, 77_489]);
}

#[test]
#[ignore = "half a million states: .ci/full"]
fn model_with_wrapping_rings_violates_no_condition() {
    exhaust_group(2, 2, &[2, 2], 414_574);
}

fn exhaust_trim(name: &str, scope: &trim::Scope, states: usize) {
    let name = format!("trim, 3 members, {name}");
    assert_eq!(exhaust(&name, scope).states, states, "{name}");
}

#[test]
fn trim_model_holds_if_one_member_crashes() {
    let scope = trim::Scope { crashes: 1, ..trim::Scope::of(3, 1) };
    exhaust_trim("1 place, 1 crash", &scope, 32_949);
}

#[test]
fn trim_model_holds_when_a_view_ends() {
    let scope = trim::Scope { wish: true, ..trim::Scope::of(3, 1) };
    exhaust_trim("1 place, a wish", &scope, 42_229);
}

#[test]
#[ignore = "half a million states: .ci/full"]
fn trim_model_holds_if_member_crashes_at_end() {
    let of = trim::Scope::of(3, 1);
    let scope = trim::Scope { wish: true, crashes: 1, received: [0, 1, 1], ..of };
    exhaust_trim("1 place, a wish and 1 crash", &scope, 214_689);
}

#[test]
#[ignore = "a million states: .ci/full"]
fn trim_model_holds_despite_mutual_suspicion() {
    let of = trim::Scope::of(3, 1);
    let scope = trim::Scope { mistakes: vec![(0, 1), (1, 0)], received: [0, 1, 1], ..of };
    exhaust_trim("1 place, a broken link", &scope, 851_234);
}

#[test]
#[ignore = "a million states: .ci/full"]
fn trim_model_holds_for_two_positions_and_crash() {
    let scope = trim::Scope { crashes: 1, ..trim::Scope::of(3, 2) };
    exhaust_trim("2 places, 1 crash", &scope, 758_927);
}
