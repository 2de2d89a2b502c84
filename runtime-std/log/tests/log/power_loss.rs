//! Power is lost at every operation of a run, and in the middle of restarts.

use crate::lives::{Reached, Run};
use crate::support::Chance;

/// One run of several lives. Gives how often power was lost.
fn run(seed: u64, first_cut: Option<u64>) -> Reached {
    let mut run = Run::new(seed);
    let mut chance = Chance::new(seed ^ 0x5eed);
    run.live(30, first_cut);
    for _ in 0..4 {
        // Early ones are in the middle of a restart.
        let range = if chance.is_one_of(3) { 14 } else { 90 };
        let cut = 1 + chance.below(range);
        run.live(20, Some(cut));
    }
    run.live(0, None);
    run.reached
}

fn add(sum: &mut Reached, more: Reached) {
    sum.crashes += more.crashes;
    sum.torn += more.torn;
    sum.unknown += more.unknown;
    sum.recycled += more.recycled;
    sum.cuts += more.cuts;
}

/// Says which seed fails.
fn traced(seed: u64, first_cut: Option<u64>) -> Reached {
    std::panic::catch_unwind(|| run(seed, first_cut)).unwrap_or_else(|cause| {
        eprintln!("this fails with seed {seed} and power cut at {first_cut:?}");
        std::panic::resume_unwind(cause)
    })
}

#[test]
fn nothing_durable_is_lost_wherever_power_is_cut() {
    let mut reached = Reached::default();
    for seed in 0..8 {
        let operations = Run::new(seed).live(30, None);
        for cut in 1..=operations {
            add(&mut reached, traced(seed, Some(cut)));
        }
    }
    assert!(reached.crashes >= 1000, "only {reached:?}");
    assert!(reached.torn > 20 && reached.unknown > 20, "too tame: {reached:?}");
    assert!(reached.recycled > 20 && reached.cuts > 20, "too tame: {reached:?}");
}

/// A search: `TRAMONTANE_LOG_FIRST` and `TRAMONTANE_LOG_RUNS` say from which seed on, and how many.
#[test]
fn nothing_durable_is_lost_in_random_lives() {
    let number = |name, usual| {
        std::env::var(name).ok().map_or(usual, |text| text.parse().expect("a number"))
    };
    let (first, runs) = (number("TRAMONTANE_LOG_FIRST", 1000), number("TRAMONTANE_LOG_RUNS", 300));
    let mut reached = Reached::default();
    for seed in first..first + runs {
        let cut = 1 + Chance::new(seed).below(150);
        add(&mut reached, traced(seed, Some(cut)));
    }
    println!("seeds {first} to {}: {reached:?}", first + runs - 1);
    assert!(reached.crashes > runs, "only {reached:?}");
}
