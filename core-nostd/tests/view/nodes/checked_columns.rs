//! Columns of the view protocol with checks: a flipped bit in any of them is reported after a given
//! number of steps, and until then no step acts on it.

use tramontane_core::check::{Checks, STEPS_UNREADABLE};
use tramontane_core::fabric::{Event, LossCause};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::{ControlCell, ViewColumn};
use tramontane_core::multicast::Impossible;
use tramontane_core::view::Status;

use super::members::{Laid, open_laid};
use super::{NodesRun, SUBGROUP};

fn checked() -> Laid {
    Laid { checks: Checks::On, ..Laid::default() }
}

/// Returns three members of a view over rows with checks, after they have run for a while.
fn steady() -> NodesRun {
    let mut run = NodesRun::new(3, true, 5);
    run.members = open_laid(1, &run.ids, true, 5, checked());
    run.run(6, true);
    run
}

fn flip(run: &NodesRun, column: ViewColumn, bit: usize) {
    let member = &run.members[0];
    let at = member.layout.view_offset(Rank(0), column).expect("a column") + bit / 64 * 8;
    let cell = member.row.cell(at).expect("in the row");
    cell.publish(cell.load() ^ 1 << (bit % 64));
}

#[test]
fn flipped_column_bit_is_reported_within_step_limit() {
    let columns = [
        (ViewColumn::Leaving, 64),
        (ViewColumn::JoinRequest, 64),
        (ViewColumn::Stance, 64),
        (ViewColumn::Committed, 64),
        (ViewColumn::Installed, 64),
        (ViewColumn::Suspicions(0), 128),
        (ViewColumn::Entry(0), 64),
        (ViewColumn::Entry(2), 64),
        (ViewColumn::Wedged(SUBGROUP), 64),
        (ViewColumn::Trim(SUBGROUP), 64),
    ];
    for (column, bits) in columns {
        for bit in (0..bits).step_by(3) {
            let mut run = steady();
            flip(&run, column, bit);
            let mut steps = 0;
            let refused = loop {
                // No step sees the flipped bit until the next check of the view.
                let (progress, status) = run.step_and_tell(1);
                steps += u32::from(progress.unreadable || progress.refused.is_some());
                if let Some(refused) = progress.refused {
                    assert_eq!(progress.lost, Some((Rank(0), LossCause::Misbehaved)));
                    break refused;
                }
                assert_eq!(status, Status::Steady, "{column:?}, bit {bit}");
                assert!(run.now < 100_000_000, "{column:?}, bit {bit}: nobody says so");
            };
            assert_eq!(refused, (Rank(0), Impossible::CellCheck), "{column:?}, bit {bit}");
            assert_eq!(steps, STEPS_UNREADABLE, "{column:?}, bit {bit}");
            assert!(run.members[1].node.suspects(Rank(0)), "{column:?}, bit {bit}");
        }
    }
}

/// The next heartbeat rewrites the cell.
#[test]
fn flipped_heartbeat_recovers_without_suspicion() {
    for bit in 0..64 {
        let mut run = steady();
        flip(&run, ViewColumn::Heartbeat, bit);
        for _ in 0..8 {
            assert_eq!(run.step(1), Status::Steady);
        }
        run.now += 2_000_000;
        assert_eq!(run.step(0), Status::Steady);
        run.run(100, true);
        assert!(!run.members[1].node.suspects(Rank(0)), "bit {bit}");
    }
}

#[test]
fn survivors_with_checks_continue_after_a_death() {
    for seed in 0..20 {
        let mut run = NodesRun::new(4, seed % 2 == 0, seed);
        run.members = open_laid(1, &run.ids, run.shared, seed, checked());
        run.run(5 + seed as u32, true);
        run.stopped.insert(run.ids[seed as usize % 4].0);
        run.run_to_the_end_of_the_view(true);
        run.go_on();
        assert_eq!(run.ids.len(), 3, "seed {seed}");
    }
}

/// The others no longer need to agree with the lost member.
#[test]
fn damaged_cell_of_lost_member_blocks_nothing() {
    let mut run = steady();
    report_loss_of_the_first(&mut run);
    flip(&run, ViewColumn::Heartbeat, 7);
    for step in 0..STEPS_UNREADABLE {
        let (progress, _) = run.step_and_tell(1);
        assert_eq!(progress.refused, None, "step {step}");
        assert!(step < 3 || run.members[1].node.suspects(Rank(0)), "step {step}");
    }
}

#[test]
fn damaged_cell_of_a_suspected_member_is_ignored() {
    let mut run = steady();
    report_loss_of_the_first(&mut run);
    for rank in [1, 1, 2] {
        run.now += 2_000_000;
        run.step(rank);
    }
    assert!(run.members[2].node.suspects(Rank(0)), "another says so");
    flip(&run, ViewColumn::Heartbeat, 7);
    for step in 0..2 * STEPS_UNREADABLE {
        let (progress, _) = run.step_and_tell(2);
        assert_eq!(progress.refused, None, "step {step}");
    }
}

/// Makes the fabric of the second of three members report that the first is lost.
fn report_loss_of_the_first(run: &mut NodesRun) {
    let lost = Event::PeerLost { view: ViewId(1), peer: Rank(0), cause: LossCause::Unreachable };
    run.members[1].fabric.events.push_back(lost);
}

/// Otherwise the wedged member would sleep, and would neither see the cell repaired nor report it.
#[test]
fn wedged_member_steps_while_a_cell_is_damaged() {
    let mut run = steady();
    run.members[0].node.request_join(NodeId(9)).expect("a stranger");
    run.now += 1_000;
    run.step(0);
    assert_eq!(run.step_and_tell(1).1, Status::Wedged);
    let member = &run.members[0];
    let at = member.layout.control_offset(Rank(0), SUBGROUP).expect("a member");
    let cell = member.row.cell(at + ControlCell::Received.offset()).expect("in the row");
    cell.publish(cell.load() ^ 1 << 7);
    for step in 1..STEPS_UNREADABLE {
        let (progress, status) = run.step_and_tell(1);
        assert_eq!(status, Status::Wedged, "step {step}");
        assert!(progress.unreadable && !progress.is_idle(), "step {step}");
        assert_eq!(progress.lost, None, "step {step}");
    }
    let (progress, _) = run.step_and_tell(1);
    assert_eq!(progress.refused, Some((Rank(0), Impossible::CellCheck)));
    assert_eq!(progress.lost, Some((Rank(0), LossCause::Misbehaved)));
}
