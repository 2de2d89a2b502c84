//! Either partition restarts with empty memory at any step, and 1,000 messages agree.

#![allow(clippy::unwrap_used)]

mod common;

use common::{MESSAGES, PartitionRun};
use tramontane_core::health::HealthKind;
use tramontane_partition::Phase;
use tramontane_partition::group::{Members, WhichPartition};
use tramontane_partition::ports::HealthReport;

/// Returns the number of steps in a run without a restart.
fn steps_of_a_run() -> u64 {
    let mut run = PartitionRun::new(MESSAGES);
    run.finish().unwrap();
    run.steps
}

fn kinds(reports: &[HealthReport]) -> Vec<HealthKind> {
    let kind = |report: &HealthReport| match report {
        HealthReport::Health(event) => Some(event.kind),
        HealthReport::OtherGroup(_) | HealthReport::Stopped(_) => None,
    };
    reports.iter().filter_map(kind).collect()
}

#[test]
fn partitions_agree_despite_full_queues() {
    let mut run = PartitionRun::new(MESSAGES);
    run.finish().unwrap();
    assert!(run.wires.full() > 100, "the queues were full {} times", run.wires.full());
    for reports in &run.reports {
        assert_eq!(kinds(reports), [HealthKind::Started]);
    }
}

/// The restart follows the kill either at once or after the partner has made some steps alone.
#[test]
fn either_partition_can_restart_at_any_step() {
    let steps = steps_of_a_run();
    assert!(steps > 300, "a run of {steps} steps");
    println!("a run of {steps} steps");
    let mut restored = 0;
    for victim in WhichPartition::BOTH {
        for at in 0..steps {
            // At every fourth step, the partner runs alone for a while.
            for away in [0].into_iter().chain((at % 4 == 3).then_some(at % 40)) {
                let mut run = PartitionRun::new(MESSAGES);
                while run.steps < at {
                    run.step_in_turn();
                }
                run.kill(victim);
                for _ in 0..away {
                    run.step(victim.other());
                }
                run.start(victim);
                let before = run.count(victim.other());
                let finished = run.finish();
                assert!(finished.is_ok(), "{victim:?} at {at}, {away} away: {finished:?}");
                let told = kinds(&run.reports[victim.other().index()]);
                let was_seen = told.contains(&HealthKind::Restarted);
                assert!(was_seen || before == 0, "{victim:?} at {at}: {told:?}");
                restored += u64::from(before > 0);
            }
        }
    }
    assert!(restored > steps, "{restored} restarts after a message");
}

/// They restart repeatedly, in all phases of rejoining, and sometimes both.
#[test]
fn partitions_can_restart_while_rejoining() {
    for seed in 0..400_u64 {
        let mut run = PartitionRun::new(MESSAGES);
        let mut random = seed;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99_991);
            (random >> 33) % below
        };
        for _ in 0..8 {
            // In rare cases both restart: then the state is lost, and they begin again from
            // nothing.
            let victim = WhichPartition::BOTH[next(2) as usize];
            for _ in 0..next(60) {
                run.step(WhichPartition::BOTH[next(2) as usize]);
            }
            run.kill(victim);
            for _ in 0..next(30) {
                run.step(victim.other());
            }
            run.start(victim);
        }
        // The state survives if at each moment one of the two had it; otherwise the order begins
        // again.
        let finished = run.finish();
        assert!(finished.is_ok(), "seed {seed}: {finished:?}");
    }
}

#[test]
fn restarted_partner_receives_the_survivors_state() {
    let mut run = PartitionRun::new(MESSAGES);
    while run.count(WhichPartition::A) < 200 {
        run.step(WhichPartition::A);
        run.step(WhichPartition::B);
    }
    run.kill(WhichPartition::A);
    let at_the_end = run.count(WhichPartition::B);
    // A is not scheduled at all: silence ends no view.
    for _ in 0..20_000 {
        run.step(WhichPartition::B);
    }
    let silent = kinds(&run.reports[1]);
    assert_eq!(silent, [HealthKind::Started, HealthKind::Silent]);
    assert!(run.count(WhichPartition::B) < at_the_end + 20, "nothing is delivered by one of two");
    run.start(WhichPartition::A);
    run.step(WhichPartition::A);
    let mut seen_alone = false;
    while run.count(WhichPartition::A) == 0 {
        let phase = run.step(WhichPartition::B);
        seen_alone |= matches!(phase, Some(Phase::InView(_, Members::Alone(WhichPartition::B))));
        run.step(WhichPartition::A);
    }
    assert!(seen_alone && run.count(WhichPartition::A) >= at_the_end, "with the state");
    let both = Members::Both(WhichPartition::B);
    assert!(
        matches!(run.step(WhichPartition::A), Some(Phase::InView(_, members)) if members == both)
    );
    run.finish().unwrap();
}
