//! The simulated fabric keeps the contract: with all promises and without each, on several seeds, with
//! jitter, with a short queue; and so does what counts what goes through it.
//!
//! `cargo test -p tramontane-conformance --test contract_simulated -- --nocapture` prints the verdicts.

#[path = "testbeds/simulated.rs"]
mod simulated;

use simulated::{Simulated, Wrap};
use tramontane_conformance::contract::{Report, run, run_blocks};
use tramontane_core::fabric::Promises;
use tramontane_fixtures::counting::Counting;
use tramontane_fixtures::fabric::SimFabric;
use tramontane_fixtures::profile::Profile;

/// What the hardware may be like, each with the clauses that say nothing about it.
fn profiles() -> Vec<(&'static str, Profile, &'static [&'static str])> {
    let usual = Profile::default;
    vec![
        ("the usual hardware", usual(), &[]),
        ("jitter", Profile { jitter_ns: 900, ..usual() }, &[]),
        ("a queue of five", Profile { queue_depth: 5, ..usual() }, &[]),
        ("small writes", Profile { write_bytes_max: 4096, guard_bytes_max: 24, ..usual() }, &[]),
        ("no address order", usual().without(Promises::ADDRESS_ORDER), &["address-order"]),
        (
            "no order between writes",
            usual().without(Promises::WRITE_ORDER),
            &["write-order-in-list", "write-order-between-lists"],
        ),
        (
            "neither order",
            Profile {
                jitter_ns: 900,
                ..usual().without(Promises::WRITE_ORDER | Promises::ADDRESS_ORDER)
            },
            &["write-order-in-list", "write-order-between-lists", "address-order"],
        ),
        (
            "completions that show nothing",
            usual().without(Promises::COMPLETION_VISIBLE),
            &["completion-visible"],
        ),
    ]
}

/// How many seeds each profile is run with.
const SEEDS: u64 = 12;

#[track_caller]
fn assert_kept(what: &str, seed: u64, report: &Report, silent: &[&str]) {
    assert!(
        report.broken().next().is_none(),
        "{what}, seed {seed}: the contract is broken:\n{report}"
    );
    // Only a limit above the row's size may silence a clause beside those.
    let told: Vec<&str> = report.not_applicable().filter(|id| *id != "write-too-large").collect();
    assert_eq!(told, silent, "{what}, seed {seed}: clauses that say nothing");
}

#[test]
fn the_simulated_fabric_keeps_the_contract() {
    for (what, profile, silent) in profiles() {
        for seed in 0..SEEDS {
            let report = run(&Simulated { profile: profile.clone(), seed, wrap: Bare });
            if seed == 0 {
                println!("The simulated fabric, {what}:\n{report}");
            }
            assert_kept(what, seed, &report, silent);
        }
    }
}

#[test]
fn blocks_on_the_simulated_fabric_keep_the_contract() {
    for (what, profile, _) in profiles() {
        for seed in 0..SEEDS / 4 {
            let report = run_blocks(&Simulated { profile: profile.clone(), seed, wrap: Bare });
            if seed == 0 {
                println!("Blocks on the simulated fabric, {what}:\n{report}");
            }
            assert_kept(what, seed, &report, &[]);
        }
    }
}

/// Nothing is put around it.
struct Bare;

impl Wrap for Bare {
    type Fabric<'m> = SimFabric<'m>;

    fn wrap<'m>(&self, inner: SimFabric<'m>) -> SimFabric<'m> {
        inner
    }
}

/// Counts what goes through.
struct Counted;

impl Wrap for Counted {
    type Fabric<'m> = Counting<SimFabric<'m>>;

    fn wrap<'m>(&self, inner: SimFabric<'m>) -> Counting<SimFabric<'m>> {
        Counting::new(inner)
    }
}

#[test]
fn a_fabric_that_counts_keeps_the_contract() {
    let report = run(&Simulated { profile: Profile::default(), seed: 1, wrap: Counted });
    assert_kept("counted", 1, &report, &[]);
}
