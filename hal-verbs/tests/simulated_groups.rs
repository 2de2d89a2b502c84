//! Whole groups over RDMA in virtual time, over many seeds: `RdmaViews` on a fake device with a
//! side channel, in the shared simulated world. The checker is the same as for all other simulated
//! runs.
//!
//! A seed determines the plan, the properties of the device, and its faults. A failure prints its
//! seed and the command that repeats it.
//!
//! | module | subject |
//! |---|---|
//! | `device` | the properties of a run's devices |
//! | `faults` | faults of devices, and their times |
//! | `hardware` | devices and side channels in the simulated world: time, crashes, faults |
//! | `links` | paths between devices that are cut or slow for a while |
//! | `search` | many runs and their results |
//! | `simulated_shards` | the same for shards: replicas whose logs are regions |
//!
//! `TRAMONTANE_RDMA_SEED` runs only the plans of that seed, `TRAMONTANE_RDMA_RUNS` sets the number
//! of runs of the search of 10,000, and `TRAMONTANE_RDMA_FIRST` its first seed.
//!
//! # Not covered
//! - In runs of groups, regions, which only shards have: nothing in those runs relies on access
//!   flags or moves a queue pair to RESET.
//! - Members that sleep, because their wakeups arrive through descriptors and so in real time; and
//!   blocks.

#[path = "simulated_groups/device.rs"]
mod device;
#[path = "simulated_groups/faults.rs"]
mod faults;
#[path = "simulated_groups/hardware.rs"]
mod hardware;
#[path = "simulated_groups/links.rs"]
mod links;
#[allow(dead_code, reason = "plans are not made smaller here")]
#[path = "../../fixtures/tests/simulated_groups/membership_history/mod.rs"]
mod membership_history;
#[path = "simulated_groups/search.rs"]
mod search;
mod simulated_shards;

use tramontane_fixtures::world::{Ending, Goal, Plan};

use search::{GroupKind, SearchRun, search, tell};

/// Number of seeds with changing membership in the usual test.
const SEEDS: u64 = 120;

/// Number of seeds with fixed membership.
const FIXED_SEEDS: u64 = 60;

/// Each permitted deviation of devices, and each fault, must occur in at least one of this many
/// runs.
const ONE_OF: u64 = 120;

#[test]
fn changing_groups_keep_every_promise_over_rdma() {
    let tally = search(GroupKind::Changing, SEEDS);
    let wanted =
        [Goal::PeerLost, Goal::Join, Goal::Rejoin, Goal::Takeover, Goal::Resend, Goal::ManyViews];
    let missed: Vec<&Goal> =
        wanted.iter().filter(|goal| !tally.reached.contains_key(goal)).collect();
    assert!(tally.runs < SEEDS || missed.is_empty(), "no run reached {missed:?}");
    let seldom = tally.seldom_reached(ONE_OF);
    assert!(tally.runs < SEEDS || seldom.is_empty(), "inconclusive: seldom {seldom:?}");
}

#[test]
fn fixed_groups_keep_every_promise_over_rdma() {
    let tally = search(GroupKind::Fixed, FIXED_SEEDS);
    let calm = tally.endings.get(&Ending::Calm).copied().unwrap_or(0);
    assert!(tally.runs < FIXED_SEEDS || calm * 2 > tally.runs, "{calm} calm");
}

/// Run by `.ci/full`, like the next test.
#[test]
#[ignore = "takes minutes: built for release"]
fn ten_thousand_changing_groups_keep_promises_over_rdma() {
    let tally = search(GroupKind::Changing, many() / 2);
    let seldom = tally.seldom_reached(ONE_OF);
    assert!(tally.runs < SEEDS || seldom.is_empty(), "inconclusive: seldom {seldom:?}");
}

#[test]
#[ignore = "takes minutes: built for release"]
fn ten_thousand_fixed_groups_keep_promises_over_rdma() {
    let tally = search(GroupKind::Fixed, many() / 2);
    let seldom = tally.seldom_reached(4 * ONE_OF);
    assert!(tally.runs < 10 * SEEDS || seldom.is_empty(), "inconclusive: seldom {seldom:?}");
}

/// Returns the number of runs of both kinds.
fn many() -> u64 {
    search::from_environment("TRAMONTANE_RDMA_RUNS").unwrap_or(10_000)
}

#[test]
fn seed_determines_a_run_over_rdma() {
    for seed in [3, 17, 40] {
        let run = GroupKind::Changing.draw(seed);
        let runs = [run.go(), run.go()];
        assert!(runs[0] == runs[1], "seed {seed} ran in two ways");
    }
}

#[test]
fn faultless_group_delivers_everything_over_rdma() {
    let plan = Plan::spindle(3, 3, 50, 100, 1).stretched(search::STRETCH);
    let outcome = SearchRun::of_plan(plan).go();
    assert_eq!(outcome.complaints, [""; 0]);
    assert_eq!(outcome.ending, Ending::Calm, "{}", tell(&outcome));
    assert_eq!(outcome.total(|process| process.delivered), 3 * 3 * 50);
}
