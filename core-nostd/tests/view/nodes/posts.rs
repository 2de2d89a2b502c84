//! A member's posts to its peers while a view ends.

use super::NodesRun;
use super::members::NodeMember;
use tramontane_core::fabric::LossCause;
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::ViewColumn;
use tramontane_core::view::Status;

/// A percentage that makes every queue full.
const FULL: u64 = 101;

/// Returns a group whose member 1 wedges in its next step. It has received a message and sent one,
/// and neither could be posted to its full queues.
fn about_to_wedge() -> NodesRun {
    let mut run = NodesRun::new(3, false, 5);
    for member in &mut run.members {
        member.fabric.full_percent = 0;
    }
    run.run(5, false);
    run.send(0);
    run.step(0);
    run.members[1].fabric.full_percent = FULL;
    run.send(1);
    assert_eq!(run.step(1), Status::Steady);
    run.members[0].node.request_join(NodeId(9)).expect("a stranger");
    run.now += 1_000;
    run.step(0);
    run.now += 1_000;
    run
}

/// VIE-6: messages that became stable before a view ended are delivered without waiting for the
/// decision, so each peer must learn what has been received here.
#[test]
fn wedged_member_posts_writes_delayed_by_full_queue() {
    let mut run = about_to_wedge();
    assert_eq!(run.step(1), Status::Wedged);
    assert!(!is_shown_everywhere(&run, 1) && !run.members[1].node.is_all_posted());
    run.members[1].fabric.full_percent = 0;
    assert_eq!(run.step(1), Status::Wedged);
    assert!(is_shown_everywhere(&run, 1) && run.members[1].node.is_all_posted());
}

/// A peer that reads where this member's messages in the view end has already been sent everything
/// before that.
#[test]
fn view_columns_are_posted_after_everything_else() {
    let mut run = about_to_wedge();
    run.members[1].fabric.full_percent = 0;
    run.members[1].fabric.posted.clear();
    assert_eq!(run.step(1), Status::Wedged);
    let NodeMember { fabric, layout, .. } = &run.members[1];
    let columns = layout.view_offset(Rank(1), ViewColumn::Heartbeat).expect("a column");
    for peer in [0, 2] {
        let lists = fabric.posted.iter().filter(|(to, _)| *to == peer);
        let of_the_view: Vec<bool> = lists.map(|(_, offset)| *offset >= columns).collect();
        // The heartbeat is posted first, and guards nothing.
        assert_eq!(of_the_view, [true, false, true], "to {peer}");
    }
}

/// VIE-2: a steady view is checked a few times per heartbeat, and costs other steps nothing; once
/// the view is ending, each step advances it.
#[test]
fn ending_view_is_checked_in_every_step() {
    let mut run = about_to_wedge();
    let looks = |run: &mut NodesRun, rank: usize| {
        let before = run.members[rank].fabric.barriers.get();
        // Only reads of the view need a barrier here.
        let status = run.step(rank);
        (status, run.members[rank].fabric.barriers.get() - before)
    };
    // The interval of a heartbeat is ten steps.
    assert_eq!(run.step(2), Status::Wedged);
    let of_the_wedged = (0..9).map(|_| looks(&mut run, 2));
    assert!(of_the_wedged.into_iter().all(|(status, looks)| status == Status::Wedged && looks > 0));
    let mut run = NodesRun::new(3, true, 5);
    run.run(30, false);
    let of_the_steady = (0..10).map(|_| looks(&mut run, 2)).filter(|(_, looks)| *looks > 0).count();
    assert!((2..=4).contains(&of_the_steady), "{of_the_steady}");
}

/// VIE-3: a suspected member is cut off at the fabric, no matter which member suspected it first,
/// and the caller receives one report.
#[test]
fn suspected_member_is_disconnected_and_reported() {
    let mut run = NodesRun::new(4, false, 5);
    run.run(5, false);
    run.members[0].node.peer_lost(Rank(3));
    let told = |run: &mut NodesRun, rank: usize| -> Vec<_> {
        (0..12).filter_map(|_| run.step_and_tell(rank).0.lost).collect()
    };
    for rank in 0..2 {
        assert_eq!(told(&mut run, rank), [(Rank(3), LossCause::Unreachable)], "at {rank}");
        assert_eq!(run.members[rank].fabric.cut, [3].into(), "at {rank}");
    }
    // Member 2 publishes a value that no correct member publishes.
    let offset = run.members[2].layout.view_offset(Rank(2), ViewColumn::Suspicions(0));
    let row = &run.members[1].fabric.copies.as_ref().expect("copies")[2][1];
    row.cell(offset.expect("a column")).expect("in the row").publish(1 << 40);
    assert_eq!(told(&mut run, 1), [(Rank(2), LossCause::Misbehaved)]);
    assert_eq!(run.members[1].fabric.cut, [2, 3].into());
}

/// Returns whether each peer's copy of a member's row equals the row.
fn is_shown_everywhere(run: &NodesRun, owner: usize) -> bool {
    let member = &run.members[owner];
    let copies = &member.fabric.copies.as_ref().expect("copies")[owner];
    let read = |at: usize| {
        let mut bytes = vec![0; copies[at].reader().bytes()];
        copies[at].reader().read(0, &mut bytes).expect("the whole row");
        bytes
    };
    (0..copies.len()).all(|at| read(at) == read(owner))
}
