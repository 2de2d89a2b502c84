//! Faults planted in the protocol: the searches must find each. Run with
//! `cargo test -p tramontane-core --features planted-faults --test view planted`.

use tramontane_core::view::Fault;

use crate::chain::Chain;
use crate::exhaustive::{Scope, explore};

/// The scopes of the small search, cheapest first.
fn scopes(fault: Fault) -> Vec<(&'static str, Scope)> {
    let limit = 60_000;
    let base = Scope { fault: Some(fault), states_max: limit, ..Scope::of(3) };
    vec![
        ("leave", Scope { leavers: vec![1], senders: vec![0], ..base.clone() }),
        ("one crash", Scope { crashes: 1, ..base.clone() }),
        ("leave, one crash", Scope { crashes: 1, leavers: vec![1], senders: vec![0], ..base.clone() }),
        ("two crashes", Scope { crashes: 2, ..base.clone() }),
        ("a mistaken report", Scope { mistakes: vec![(1, 0)], ..base.clone() }),
        ("a link that fails", Scope { mistakes: vec![(0, 1), (1, 0)], ..base }),
    ]
}

/// Which small search finds a fault, and what it says.
fn found_exhaustively(fault: Fault) -> Option<String> {
    scopes(fault).into_iter().find_map(|(name, scope)| {
        let wrong =
            std::panic::catch_unwind(|| explore(&scope).err()).unwrap_or_else(|_| Some("a panic".into()))?;
        Some(format!("{name}: {wrong}"))
    })
}

/// The first of so many random plans that finds a fault, and what it says.
fn found_at_random(fault: Fault, plans: u64) -> Option<String> {
    (1..=plans).find_map(|seed| {
        let run = std::panic::catch_unwind(|| Chain::with_fault(seed, fault).run().err());
        let wrong = run.unwrap_or_else(|_| Some("a panic".into()))?;
        Some(format!("seed {seed}: {wrong}"))
    })
}

fn must_be_found(fault: Fault) {
    let small = found_exhaustively(fault);
    let random = found_at_random(fault, 400);
    println!("{fault:?}\n  exhaustive: {small:?}\n  random: {random:?}");
    assert!(small.is_some() || random.is_some(), "nothing finds {fault:?}");
}

macro_rules! faults {
    ($($name:ident $fault:ident)*) => {$(
        #[test]
        fn $name() {
            must_be_found(Fault::$fault);
        }
    )*};
}

faults! {
    a_takeover_that_forgets TakeoverForgets
    a_trim_set_anew TrimRecomputed
    a_takeover_too_early TakeoverTooEarly
    accepting_from_a_suspected_leader AcceptsFromSuspected
    receiving_after_the_final_counts ReceivesAfterWedge
    a_decision_without_the_echo EchoSkipped
    no_majority NoMajority
    going_on_while_suspected SuspectedGoesOn
    trims_from_a_majority_alone TrimFromMajority
    the_guard_before_its_list GuardFirst
    a_seal_without_memory MemoryNotReady
    installing_before_the_trim InstallsEarly
    a_leaver_that_goes_early LeaverGoesEarly
}
