//! Histories of a parent and its child whose leaders change: the messages that the parent's next
//! leader passes on, and what the child's next leader learns of them.

use tramontane_core::ids::ClientNumber;
use tramontane_core::tram::{LinkId, LinkRole, ReplicaId, ReplicaLinks, Shape};

use super::script::{C, P, Script, TAIL, both};
use crate::world::World;

/// Offset of the cell in a row of the parent's replica that counts the positions that it has passed
/// on.
const WRITTEN: usize = 0;
/// Offset of the cell that counts how many of those the child shows as decided.
const SETTLED: usize = 16;
/// Offset of the cell in a row of the child's replica that counts how many of those it has taken.
const TAKEN: usize = 0;

/// Returns the link from a parent's replica to the first replica of the child.
fn to_child(script: &Script) -> LinkId {
    let links = ReplicaLinks::of(script.world.overlay, P[0].group);
    links.find(LinkRole::Child { child: 0, rank: C[0].rank }).expect("a link")
}

/// Returns the link from a child's replica to the first replica of the parent.
fn to_parent(script: &Script) -> LinkId {
    let links = ReplicaLinks::of(script.world.overlay, C[0].group);
    links.find(LinkRole::Parent(P[0].rank)).expect("a link")
}

/// Returns the positions, plus one, of the messages in a row of a parent's replica.
fn marks(script: &Script, id: ReplicaId) -> Vec<u64> {
    let window = script.world.settings.window as usize;
    let slots = Shape::of(script.world.overlay, C[0].group).parent_row_bytes() - 64;
    let link = to_child(script);
    let mark = |slot: usize| script.world.shown(id, link, 64 + slot * (slots / window));
    (0..window).map(mark).filter(|mark| *mark > 0).collect()
}

/// TRM-6: a leader of the parent leads again, and its row towards the child's leader has another
/// message at a position. It passes on its messages in a new view, because the child has no other
/// leader that could be served instead.
#[test]
fn conflicting_row_is_abandoned_for_a_new_view() {
    let mut script = Script::new(&[None, Some(0)]);
    script.ordered_by(P[0], 0, both());
    let tails = C.map(|id| script.world.log_control(id)[TAIL]);
    script.among(&[P[0], C[0], C[1], C[2]], &[], |world| {
        (0..3).all(|at| world.log_control(C[at])[TAIL] > tails[at])
    });
    let n = script.multicast(1, both());
    // Replicas 1 and 2 of the parent hear each other, and so do all replicas of the child.
    let two_groups = [&P[1..], &C].concat();
    script.world.allow_only(&two_groups, &[ClientNumber(1)]);
    for (parent, child) in P.into_iter().flat_map(|parent| C.map(|child| (parent, child))) {
        let [parent, child] = [parent, child].map(|id| script.world.process_of(id));
        let (parent, child) = (parent.expect("it runs"), child.expect("it runs"));
        script.world.network.borrow_mut().block(parent, child);
        script.world.network.borrow_mut().block(child, parent);
    }
    let is_there = |world: &World| P[1..].iter().all(|id| world.has_delivered(*id, n));
    assert!(script.goes_on(&two_groups, &[1], 4_000, is_there));
    assert_eq!(script.world.leader(C[0].group), Some(C[0]));
    script.delivers(C[1], n, &[P[0], P[2], C[0], C[1], C[2]], &[]);
    assert_eq!(script.world.leader(P[0].group), Some(P[0]));
    assert_eq!(script.world.leader(C[0].group), Some(C[0]));
    script.end();
}

/// TRM-6: the parent's next leader has entries in its log that the child's leader has taken. It
/// passes on only what follows them: its null.
#[test]
fn new_parent_leader_skips_messages_already_taken() {
    let mut script = Script::new(&[None, Some(0)]);
    let all = script.world.ids();
    // Replica 1 restarts, so its rows contain nothing from a time when it led.
    script.world.crash_replica(P[1]);
    script.world.start_replica(P[1], false);
    script.among(&all, &[0, 1], |world| world.replicas[&P[1]].replica.is_voter());
    let last = (0..3).map(|_| script.multicast(0, both())).last().expect("three");
    all.iter().for_each(|id| script.delivers(*id, last, &all, &[0]));
    // The child shows how much it has taken.
    script.does_come(&all, &[0, 1], 400, |_| false);
    let taken = script.world.shown(C[0], to_parent(&script), TAKEN);
    let link = to_child(&script);
    assert_eq!(script.world.shown(P[0], link, WRITTEN), taken);
    assert_eq!(marks(&script, P[1]), []);
    script.world.crash_replica(P[0]);
    script.among(&all[1..], &[], |world| world.shown(P[1], link, WRITTEN) > taken);
    assert_eq!(marks(&script, P[1]), [taken + 1]);
    script.world.start_replica(P[0], false);
    script.end();
}

/// TRM-6: the child's leader has decided a message, and shown the parent that it has taken it. The
/// parent's log has dropped that message when both leaders die. The child's next leader has the
/// message, without knowing that it is decided. It learns that from the parent's next leader,
/// although no remaining replica has shown it to that leader: the entries kept for the child begin
/// after the message.
#[test]
fn childs_next_leader_learns_of_dropped_decisions() {
    let mut script = Script::new(&[None, Some(0)]);
    let all = script.world.ids();
    script.does_come(&all, &[0, 1], 400, |_| false);
    let m = script.multicast(0, both());
    let tail = script.world.log_control(C[1])[TAIL];
    script
        .among(&[P[0], P[1], P[2], C[0], C[1]], &[0], |world| world.log_control(C[1])[TAIL] > tail);
    // The leader learns that its write has landed, and no further writes reach replica 1.
    script.world.allow_only(&C[..2], &[]);
    while script.world.network.borrow_mut().deliver_if_any_can() {}
    script.delivers(C[0], m, &[P[0], P[1], P[2], C[0]], &[]);
    script.does_come(&[P[0], P[1], P[2], C[0]], &[], 400, |_| false);
    let around = script.world.settings.log_entries;
    script.go_on(&P, 1, around);
    assert!(C[1..].iter().all(|id| !script.world.has_delivered(*id, m)));
    let [first, second] = [P[0], C[0]];
    script.world.crash_replica(first);
    script.world.crash_replica(second);
    script.delivers(C[1], m, &[P[1], P[2], C[1], C[2]], &[]);
    [first, second].iter().for_each(|id| script.world.start_replica(*id, false));
    script.end();
}

/// TRM-6: only a child's next leader needs to know that the child has taken a message, so that
/// information is sent with the next message.
#[test]
fn childs_progress_is_sent_with_next_message() {
    let mut script = Script::new(&[None, Some(0)]);
    let all = script.world.ids();
    script.does_come(&all, &[0, 1], 400, |_| false);
    // No heartbeat is due in the meantime, so the child does not publish that it has taken the
    // message.
    let m = script.multicast(0, both());
    script.at_one_moment(0, 20);
    assert!(script.world.has_delivered(C[0], m));
    let leader = script.world.process_of(P[0]).expect("it runs");
    assert!(script.world.network.borrow().writes_to(leader).is_empty());
    let link = to_child(&script);
    let taken = script.world.shown(P[0], link, WRITTEN);
    assert_eq!(script.world.shown(P[0], link, SETTLED), taken - 1);
    script.world.poke(P[0], link, TAKEN, taken);
    script.world.step_replica(P[0]);
    assert_eq!(script.world.shown(P[0], link, SETTLED), taken);
    assert!(script.world.network.borrow().writes_to(leader).is_empty());
    script.end();
}
