//! Without views, a restart is detected and reported to both partitions, and both stop.

#![cfg(not(feature = "views"))]
#![allow(clippy::unwrap_used)]

mod common;

use common::{MESSAGES, PartitionRun};
use tramontane_core::health::HealthKind;
use tramontane_partition::Phase;
use tramontane_partition::group::WhichPartition;
use tramontane_partition::ports::{HealthReport, Why};

#[test]
fn partitions_agree_on_a_thousand_messages() {
    let mut run = PartitionRun::new(MESSAGES);
    run.finish().unwrap();
}

#[test]
fn restart_at_any_step_stops_both_partitions() {
    let mut run = PartitionRun::new(MESSAGES);
    run.finish().unwrap();
    let steps = run.steps;
    let mut told = 0;
    for victim in WhichPartition::BOTH {
        for at in 0..steps {
            let mut run = PartitionRun::new(MESSAGES);
            while run.steps < at {
                run.step_in_turn();
            }
            let other = victim.other();
            let was_in_view =
                matches!(run.lives[other.index()].as_ref().unwrap().phase(), Phase::InView(..));
            run.kill(victim);
            run.start(victim);
            for _ in 0..200 {
                run.step(victim);
                run.step(other);
            }
            if !was_in_view {
                continue;
            }
            let events = |own: WhichPartition, kind| {
                run.reports[own.index()].iter().any(
                    |report| matches!(report, HealthReport::Health(event) if event.kind == kind),
                )
            };
            assert!(events(other, HealthKind::Restarted), "{victim:?} at {at}");
            assert!(events(victim, HealthKind::StoppedBecauseOfThis), "{victim:?} at {at}");
            let phase = run.lives[other.index()].as_ref().unwrap().phase();
            assert_eq!(phase, Phase::Stopped(Why::Partner));
            assert_eq!(run.count(victim), 0);
            told += 1;
        }
    }
    assert!(told > steps, "{told} of {} restarts", steps * 2);
}
