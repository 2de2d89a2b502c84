//! When members send heartbeats, and when a silent member is suspected.

use super::NodesRun;
use tramontane_core::fabric::Event;
use tramontane_core::ids::{Rank, Time};
use tramontane_core::view::Status;

/// The times that the members of these tests use.
const HEARTBEAT: u64 = 1_000;
const FAILURE_TIMEOUT: u64 = 20_000;
const FIRST_TIMEOUT: u64 = 40_000;

fn shows_life(run: &mut NodesRun, rank: usize) -> u32 {
    let member = &mut run.members[rank];
    member.fabric.full_percent = 0;
    member.node.show_life(Time(run.now), &mut member.fabric).heartbeats
}

/// VIE-2: a heartbeat before the first step would announce a member that has not begun, and one
/// after the last step a member that is no longer needed.
#[test]
fn member_sends_heartbeats_only_in_its_view() {
    let mut run = NodesRun::new(3, false, 5);
    run.now = 5 * HEARTBEAT;
    assert_eq!(shows_life(&mut run, 0), 0, "its view has not begun");
    assert_eq!(run.members[0].node.table().heartbeats(), 0);
    run.run(2, false);
    assert_eq!(shows_life(&mut run, 0), 0, "none is due");
    run.now += HEARTBEAT;
    let before = run.members[0].node.table().heartbeats();
    assert_eq!(shows_life(&mut run, 0), 2, "one a peer");
    assert_eq!(run.members[0].node.table().heartbeats(), before + 1);
    assert_eq!(shows_life(&mut run, 0), 0, "it has just done so");
    run.stopped.insert(3);
    run.members[0].node.peer_lost(Rank(2));
    run.run_to_the_end_of_the_view(false);
    assert_eq!(run.members[0].node.status(), Status::Installed);
    run.now += 10 * HEARTBEAT;
    let before = run.members[0].node.table().heartbeats();
    assert_eq!(shows_life(&mut run, 0), 0, "its view is over");
    assert_eq!(run.members[0].node.table().heartbeats(), before);
}

/// VIE-2: the clock may have any value when a view begins. A member that has not started yet has
/// the first timeout, as at any other time; a member that had started has the shorter one.
#[test]
fn silent_member_is_suspected_after_its_timeout() {
    for began in [0, 1_000_000_000] {
        for (was_there, timeout) in [(false, FIRST_TIMEOUT), (true, FAILURE_TIMEOUT)] {
            let mut run = NodesRun::new(3, true, 5);
            run.now = began;
            if was_there {
                run.step(2);
            }
            while !run.members[0].node.suspects(Rank(2)) {
                run.step(0);
                run.step(1);
                assert!(run.now - began < 2 * FIRST_TIMEOUT, "nobody misses it");
            }
            let missed_after = run.now - began;
            let due = timeout + HEARTBEAT;
            assert!((due..due + HEARTBEAT).contains(&missed_after), "{began}: {missed_after}");
        }
    }
}

/// VIE-3: a fabric may detect the loss of a peer before the view begins at this member.
#[test]
fn loss_reported_before_the_first_step_is_kept() {
    let mut run = NodesRun::new(3, true, 5);
    run.members[0].node.peer_lost(Rank(2));
    run.step(0);
    assert!(run.members[0].node.suspects(Rank(2)));
}

/// IDL-1: a node that only sends heartbeats may sleep between them.
#[test]
fn sending_heartbeats_does_not_keep_node_awake() {
    let mut run = NodesRun::new(3, true, 5);
    for member in &mut run.members {
        member.fabric.full_percent = 0;
    }
    run.run(30, false);
    let version = run.members[0].node.table().version();
    run.now += HEARTBEAT;
    let (progress, _) = run.step_and_tell(0);
    assert_eq!((progress.heartbeats, progress.writes, progress.lists), (2, 0, 2));
    assert!(progress.is_idle());
    assert_eq!(run.members[0].node.table().version(), version, "nothing else is published");
    // A heartbeat whose first post found the queues full does not count as work either.
    run.now += HEARTBEAT;
    run.members[0].fabric.full_percent = 101;
    assert_eq!(run.step_and_tell(0).0.heartbeats, 0);
    run.members[0].fabric.full_percent = 0;
    let (progress, _) = run.step_and_tell(0);
    assert_eq!((progress.heartbeats, progress.writes, progress.lists), (2, 0, 2));
    assert!(progress.is_idle());
    // A request to leave takes three writes per peer, because the guards are written with it.
    run.members[0].node.leave();
    let (progress, _) = run.step_and_tell(0);
    assert_eq!((progress.heartbeats, progress.lists), (0, 2));
    assert!(progress.writes == 6 && !progress.is_idle(), "{progress:?}");
}

/// A fabric that always has another event must not prolong a step indefinitely.
#[test]
fn step_handles_a_bounded_number_of_events() {
    let mut run = NodesRun::new(3, true, 5);
    run.members[0].fabric.events.extend([Event::Woken; 130]);
    let left = [66, 2, 0].map(|left| {
        run.step(0);
        (run.members[0].fabric.events.len(), left)
    });
    assert!(left.iter().all(|(is, left)| is == left), "{left:?}");
}
