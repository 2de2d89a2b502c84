//! Many random plans, with rows that do not change during a step and with rows that do.
//! `TRAMONTANE_VIEW_PLANS` sets their number (50 in an ordinary run, 1,000 in `.ci/full`), and
//! `TRAMONTANE_VIEW_SEED` the first seed.

use crate::chain::{Chain, ChainReached};

/// Number of failed plans after which no more are run.
const FAILURES_MAX: usize = 5;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn random_plans_lose_no_message() {
    must_hold(Chain::new);
}

#[test]
fn random_plans_with_live_rows_lose_no_message() {
    must_hold(Chain::with_live_rows);
}

fn must_hold(chain: impl Fn(u64) -> Chain) {
    let first = number("TRAMONTANE_VIEW_SEED", 1);
    let plans = number("TRAMONTANE_VIEW_PLANS", 50);
    let mut reached = ChainReached::default();
    let mut wrong = Vec::new();
    for seed in first..first + plans {
        match chain(seed).run() {
            Ok(met) => reached.add(&met),
            Err(error) => wrong.push(format!("seed {seed}: {error}")),
        }
        if wrong.len() >= FAILURES_MAX {
            break;
        }
    }
    println!("seeds {first} to {}: {reached:?}", first + plans - 1);
    assert!(wrong.is_empty(), "{} of {plans} plans:\n{}", wrong.len(), wrong.join("\n"));
    // A run that reached no interesting situation proves nothing.
    if plans >= 300 {
        assert_eq!(reached.crashed_at.len(), 5, "a leader crashed in each phase");
        for count in [
            reached.removed,
            reached.left,
            reached.all_left,
            reached.joined,
            reached.withdrawn,
            reached.takeovers,
            reached.adopted_seals,
            reached.resent,
            reached.halted,
            reached.stopped_groups,
        ] {
            assert!(count > 0, "{reached:?}");
        }
    }
}
