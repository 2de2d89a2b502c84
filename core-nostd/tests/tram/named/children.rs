//! Histories of a parent and its child: which messages are passed on, and how long they are kept.

use std::rc::Rc;

use tramontane_core::ids::{ClientNumber, GroupId};
use tramontane_core::tram::{Destinations, LinkRole, MessageId, ReplicaId, ReplicaLinks};

use super::script::{C, DECIDED, P, Script, TAIL, both, here};
use crate::world::World;

/// TRM-6: a child's group has a message that its parent's leader passed on early. The parent's next
/// leader decides another message in its position. The child must replace the first, and deliver it
/// only once the parent has ordered it again.
#[test]
fn child_replaces_message_that_parent_reordered() {
    let mut script = Script::new(&[None, Some(0)]);
    let m = script.ordered_by(P[0], 0, both());
    let tails = C.map(|id| script.world.log_control(id)[TAIL]);
    script.among(&[P[0], C[0], C[1], C[2]], &[], |world| {
        (0..3).all(|at| world.log_control(C[at])[TAIL] > tails[at])
    });
    script.leads(P[1], &P[1..]);
    let n = script.multicast(1, both());
    script.delivers(C[1], n, &[P[1], P[2], C[0], C[1], C[2]], &[1]);
    assert!(C.iter().all(|id| !script.world.has_delivered(*id, m)), "it was never decided");
    script.end();
}

/// TRM-6: the parent's first leader leads again, with another message at a position that it has
/// passed on early. Its rows towards the child must not show one message decided in place of
/// another.
#[test]
fn returning_parent_leader_never_rewrites_its_rows() {
    let mut script = Script::new(&[None, Some(0)]);
    script.ordered_by(P[0], 0, both());
    let tails = C.map(|id| script.world.log_control(id)[TAIL]);
    script.among(&[P[0], C[0], C[1], C[2]], &[], |world| {
        (0..3).all(|at| world.log_control(C[at])[TAIL] > tails[at])
    });
    script.leads(P[1], &P[1..]);
    let n = script.multicast(1, both());
    script.delivers(P[1], n, &P[1..], &[1]);
    script.delivers(P[0], n, &[P[0], P[2]], &[]);
    script.delivers(C[1], n, &[P[0], P[2], C[0], C[1], C[2]], &[]);
    script.end();
}

/// TRM-6: a child is unreachable for longer than its parent's log lasts. The entries kept for the
/// child limit the messages that the parent accepts.
#[test]
fn log_keeps_entries_that_unreachable_child_lacks() {
    let mut script = Script::new(&[None, Some(0)]);
    let entries = u64::from(script.world.settings.log_entries);
    let first = script.multicast(0, both());
    script.delivers(P[0], first, &P, &[0]);
    let place = script.world.log_control(P[0])[TAIL];
    let mut last = first;
    for _ in 0..2 * entries {
        let Ok(message) = script.world.multicast(ClientNumber(1), here(), 24) else { break };
        last = message;
        script.does_come(&P, &[1], 40, |world| world.has_delivered(P[0], message));
    }
    assert!(!script.world.has_delivered(P[0], last), "the log is full");
    assert!(script.world.log_control(P[0])[TAIL] < place + entries);
    script.end();
}

/// Fills the log of the parent with messages after one that the child has not taken. Returns that
/// message, and the tail of the log.
fn full_log() -> (Script, MessageId, u64) {
    let mut script = Script::new(&[None, Some(0)]);
    let all = script.world.ids();
    script.does_come(&all, &[0, 1], 400, |_| false);
    let entries = u64::from(script.world.settings.log_entries);
    let place = script.world.log_control(P[0])[TAIL];
    let first = script.multicast(0, both());
    script.delivers(P[0], first, &P, &[0]);
    for _ in 1..entries {
        let message = script.multicast(1, here());
        script.among(&P, &[1], |world| world.sent[&message].answered);
    }
    script.does_come(&P, &[], 100, |_| false);
    assert!(P.iter().all(|id| script.world.log_control(*id)[TAIL] == place + entries));
    (script, first, place + entries)
}

/// TRM-6: the parent's next leader owes its children a null, which has to wait because it would
/// replace that message.
#[test]
fn null_of_new_leader_waits_for_log_space() {
    let (mut script, first, tail) = full_log();
    script.leads(P[1], &P[1..]);
    script.does_come(&P[1..], &[], 40, |_| false);
    assert_eq!(script.world.log_control(P[1])[TAIL], tail, "there is no room");
    script.delivers(C[1], first, &[P[1], P[2], C[0], C[1], C[2]], &[]);
    script.end();
}

/// TRM-5, TRM-6: the admission of a returning replica does not replace it either.
#[test]
fn admission_of_replica_waits_for_log_space() {
    let (mut script, first, tail) = full_log();
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    script.does_come(&P, &[], 200, |_| false);
    assert_eq!(script.world.log_control(P[2])[TAIL], tail, "it has the log");
    assert_eq!(script.world.log_control(P[0])[TAIL], tail, "there is no room");
    let all = script.world.ids();
    script.among(&all, &[], |world| world.replicas[&P[2]].replica.is_voter());
    script.delivers(C[1], first, &all, &[]);
    script.end();
}

/// A full log is not the fault of a silent peer either. Replica 2 falls silent when everything
/// written to its log has landed: it does not hold up the log, and keeps its connection.
#[test]
fn full_log_does_not_disconnect_an_uninvolved_peer() {
    let (mut script, _, _) = full_log();
    let message = script.multicast(1, here());
    script.world.allow_only(&P, &[ClientNumber(1)]);
    let views = |world: &World| {
        let links = &world.replicas[&P[0]].memory.links;
        [1, 2].map(|rank: usize| links[rank].clone().expect("connected"))
    };
    let before = views(&script.world);
    for round in 0..800 {
        for id in &P[..if round < 200 { 3 } else { 2 }] {
            // A replica's posts to the others have not landed when it steps again.
            script.world.step_replica(*id);
            script.world.step_replica(*id);
            while script.world.network.borrow_mut().deliver_if_any_can() {}
        }
        script.world.step_client(ClientNumber(1));
        script.world.now += 600;
    }
    assert!(!script.world.has_delivered(P[0], message));
    let now = views(&script.world);
    assert!(before.iter().zip(&now).all(|(before, now)| Rc::ptr_eq(before, now)));
    script.end();
}

/// TRM-6: the parent's leader begins a new term, and its row has the messages that it passed on
/// before, at the same positions. The connection to the child stays open.
#[test]
fn returning_parent_leader_keeps_its_matching_row() {
    let mut script = Script::new(&[None, Some(0)]);
    let all = script.world.ids();
    script.does_come(&all, &[0, 1], 400, |_| false);
    let first = script.multicast(0, both());
    script.delivers(P[1], first, &[P[0], P[1], P[2], C[0]], &[0]);
    let link = ReplicaLinks::of(script.world.overlay, P[0].group)
        .find(LinkRole::Child { child: 0, rank: C[0].rank })
        .expect("a link");
    let row = |world: &World| world.replicas[&P[0]].memory.links[link.index()].clone();
    let before = row(&script.world).expect("connected");
    script.leads(P[1], &P[1..]);
    script.leads(P[0], &[P[0], P[2]]);
    script.delivers(C[1], first, &[P[0], P[2], C[0], C[1], C[2]], &[]);
    assert!(row(&script.world).is_some_and(|now| Rc::ptr_eq(&before, &now)));
    script.end();
}

/// TRM-9: a child's replica asks for the payload of a position that it has already taken. Its slot
/// now holds a later message, whose payload must not be replaced.
#[test]
fn childs_late_payload_request_replaces_no_payload() {
    const WRITTEN: usize = 0;
    const WANTED: usize = 24;
    let mut script = Script::by_reference(&[None, Some(0)]);
    let all = script.world.ids();
    let first = script.multicast(0, both());
    C.iter().for_each(|id| script.delivers(*id, first, &all, &[0]));
    script.does_come(&all, &[0, 1], 400, |_| false);
    let links = ReplicaLinks::of(script.world.overlay, P[0].group);
    let link = links.find(LinkRole::Child { child: 0, rank: C[0].rank }).expect("a link");
    let wanted = script.world.shown(P[0], link, WRITTEN);
    // These messages are too short for references.
    let window = script.world.settings.window;
    let short = |script: &mut Script| script.world.multicast(ClientNumber(0), both(), 8);
    let last = (0..window).map(|_| short(&mut script).expect("there is room")).last();
    let written = wanted + u64::from(window);
    script.among(&P, &[0], |world| world.shown(P[0], link, WRITTEN) == written);
    script.moves(&P[..1], &[P[0], C[0]], 4);
    script.world.poke(P[0], link, WANTED, wanted);
    script.moves(&P[..1], &[P[0], C[0]], 4);
    script.delivers(C[1], last.expect("some"), &all, &[0]);
    script.end();
}

/// TRM-1: messages need no round trip to the child, as long as it has room for them.
#[test]
fn parent_forwards_a_whole_window_without_waiting() {
    const WRITTEN: usize = 0;
    let mut script = Script::new(&[None, Some(0)]);
    let all = script.world.ids();
    script.does_come(&all, &[0, 1], 400, |_| false);
    let links = ReplicaLinks::of(script.world.overlay, P[0].group);
    let link = links.find(LinkRole::Child { child: 0, rank: C[0].rank }).expect("a link");
    let written = |world: &World| world.shown(P[0], link, WRITTEN);
    let before = written(&script.world);
    let window = script.world.settings.window;
    for _ in 0..window {
        script.multicast(0, both());
    }
    script.does_come(&P, &[0], 40, |_| false);
    assert_eq!(written(&script.world) - before, u64::from(window));
    script.end();
}

/// TRM-6: replica 0 has a snapshot, but not yet the earlier entry that the child lacks. It must not
/// lead before it has that entry.
#[test]
fn replica_with_snapshot_needs_entries_child_lacks() {
    let mut script = Script::new(&[None, Some(0)]);
    script.leads(P[1], &P[1..]);
    // The child has all messages before M.
    script.does_come(&[P[1], P[2], C[0], C[1], C[2]], &[], 100, |_| false);
    let decide = |script: &mut Script, client, to| {
        let message = script.multicast(client, to);
        script.delivers(P[2], message, &P[1..], &[client]);
        message
    };
    for _ in 0..3 {
        decide(&mut script, 1, here());
    }
    let m = decide(&mut script, 0, both());
    for _ in 0..script.world.settings.log_entries - 2 {
        decide(&mut script, 1, here());
    }
    script.among(&P[..2], &[], |world| world.restored > 0);
    script.delivers(C[1], m, &[P[0], P[2], C[0], C[1], C[2]], &[]);
    script.end();
}

/// The parent's leader passes on a message that no other replica has, and is lost together with the
/// client. The parent passes on nothing more to the child. A message that a client multicasts only
/// to the child must not wait for the lost message.
#[test]
fn lost_early_message_does_not_block_the_child() {
    let mut script = Script::new(&[None, Some(0)]);
    let tail = script.world.log_control(C[0])[TAIL];
    script.multicast(0, both());
    script.among(&[P[0], C[0], C[1], C[2]], &[0], |world| {
        C.iter().all(|id| world.log_control(*id)[TAIL] > tail)
    });
    assert_eq!(script.world.log_control(C[0])[DECIDED], tail, "the parent has not decided it");
    script.world.crash_client(ClientNumber(0));
    script.world.crash_replica(P[0]);
    let message = script.multicast(1, Destinations::of(GroupId(1)));
    script.delivers(C[1], message, &[P[1], P[2], C[0], C[1], C[2]], &[1]);
    script.world.start_replica(P[0], false);
    script.end();
}

/// The parent's leader passes on two messages that no other replica has, and is deposed. The next
/// leader orders a null at the position of the first, and nothing at that of the second. The child
/// must not take the second, because messages multicast only to the child would wait for it.
#[test]
fn child_ignores_deposed_leaders_message_after_null() {
    let mut script = Script::new(&[None, Some(0)]);
    let tail = script.world.log_control(P[0])[TAIL];
    for _ in 0..2 {
        script.multicast(0, both());
    }
    script.among(&P[..1], &[0], |world| world.log_control(P[0])[TAIL] == tail + 2);
    script.moves(&P[..1], &[P[0], C[0], C[1], C[2]], 20);
    script.world.crash_client(ClientNumber(0));
    script.leads(P[1], &P[1..]);
    let message = script.multicast(1, Destinations::of(GroupId(1)));
    script.delivers(C[1], message, &[P[1], P[2], C[0], C[1], C[2]], &[1]);
    script.end();
}

/// TRM-1: only a child's leader can use a message of its parent, so only that leader is served, and
/// before all others. A replica that leads later gets the messages that its group lacks.
#[test]
fn parent_serves_the_childs_leader_first() {
    for leader in [0, 1] {
        let mut script = Script::new(&[None, Some(0)]);
        let all = script.world.ids();
        if leader != 0 {
            script.world.crash_replica(C[0]);
            script.among(&all, &[0, 1], |world| world.leader(GroupId(1)) == Some(C[1]));
            script.world.start_replica(C[0], false);
            script.among(&all, &[0, 1], |world| world.replicas[&C[0]].replica.is_voter());
        }
        let (served, message) = served_first(&mut script);
        assert_eq!(served, C[leader]);
        script.world.crash_replica(C[leader]);
        let others: Vec<_> = script.world.ids().into_iter().filter(|id| *id != C[leader]).collect();
        script.delivers(C[2], message, &others, &[]);
        script.world.start_replica(C[leader], false);
        script.end();
    }
}

/// TRM-1: the child's leader publishes to a returning replica that it leads.
#[test]
fn new_parent_leader_serves_the_childs_leader_first() {
    let mut script = Script::new(&[None, Some(0)]);
    let all = script.world.ids();
    script.world.crash_replica(P[0]);
    script.among(&all, &[0, 1], |world| world.leader(GroupId(0)) == Some(P[1]));
    script.world.start_replica(P[0], false);
    script.among(&all, &[0, 1], |world| world.replicas[&P[0]].replica.is_voter());
    script.leads(P[0], &[P[0], P[2], C[0], C[1], C[2]]);
    served_first(&mut script);
    script.end();
}

/// TRM-1: when a child's replica leads again, the parent does not go through every entry that it
/// has ordered since: the child's group has decided the entries that the log has dropped.
#[test]
fn new_leader_of_child_is_served_immediately() {
    let mut script = Script::new(&[None, Some(0)]);
    let all = script.world.ids();
    for _ in 0..20 * script.world.settings.log_entries {
        let message = script.multicast(0, both());
        script.among(&all, &[0], |world| world.sent[&message].answered);
    }
    script.world.crash_replica(C[0]);
    script.among(&all, &[0, 1], |world| world.leader(GroupId(1)) == Some(C[1]));
    script.does_come(&all, &[0, 1], 3, |_| false);
    let message = script.multicast(0, both());
    let is_there = |world: &World| world.has_delivered(C[1], message);
    assert!(script.does_come(&all, &[0, 1], 10, is_there), "within few steps");
    script.world.start_replica(C[0], false);
    script.end();
}

/// TRM-1: if all replicas of a child are served, as in the paper, the child's followers receive a
/// message once it has been decided, and the next leader among them needs nothing more from the
/// parent.
#[test]
fn parent_can_serve_the_childs_followers() {
    let mut script = Script::serving_all(&[None, Some(0)]);
    let (leader, message) = served_first(&mut script);
    assert_eq!(leader, C[0]);
    script.moves(&P[..1], &[P[0], C[1], C[2]], 20);
    script.world.crash_replica(C[0]);
    script.delivers(C[1], message, &C[1..], &[]);
    script.world.start_replica(C[0], false);
    script.end();
}

/// TRM-1: the parent passes on as many messages as the child has room for. The child publishes how
/// many it has taken before that room is full; otherwise the parent would wait for the child's next
/// heartbeat.
#[test]
fn child_reports_free_space_without_a_heartbeat() {
    let mut script = Script::new(&[None, Some(0)]);
    let all = script.world.ids();
    script.does_come(&all, &[0, 1], 400, |_| false);
    let mut last = None;
    for _ in 0..3 * script.world.settings.window {
        last = Some(script.multicast(0, both()));
        script.at_one_moment(0, 40);
    }
    assert!(script.world.has_delivered(C[0], last.expect("some")));
    script.end();
}

/// Lets the parent's leader order a message and its group decide it. Asserts that the child's
/// leader is written to before all others, and that the other replicas of the child are written to
/// later or not at all. Returns the leader with the message.
fn served_first(script: &mut Script) -> (ReplicaId, MessageId) {
    let all = script.world.ids();
    script.does_come(&all, &[0, 1], 400, |_| false);
    let leader = script.world.leader(GroupId(1)).expect("a leader");
    let process = |script: &Script, id| script.world.process_of(id).expect("it runs");
    let children = C.map(|id| process(script, id));
    let message = script.ordered_by(P[0], 0, both());
    let served =
        |script: &Script| script.world.network.borrow().writes_in_order(process(script, P[0]));
    let of_child = |script: &Script| {
        served(script).into_iter().filter(|to| children.contains(to)).collect::<Vec<_>>()
    };
    assert_eq!(served(script)[0], process(script, leader));
    assert_eq!(of_child(script), [process(script, leader)]);
    for id in [P[1], P[2]] {
        assert!(served(script).contains(&process(script, id)));
    }
    script.delivers(P[0], message, &P, &[]);
    let all = if script.world.settings.leaders_alone { 1 } else { 3 };
    assert_eq!(of_child(script).len(), all);
    (leader, message)
}
