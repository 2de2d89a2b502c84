//! Histories of a parent and its child: what is passed on, and kept until it is taken.

use std::rc::Rc;

use tramontane_core::ids::{ClientNumber, GroupId};
use tramontane_core::tram::{Destinations, LinkRole, MessageId, ReplicaId, ReplicaLinks};

use super::script::{C, DECIDED, P, Script, TAIL, both, here};
use crate::world::World;

/// TRM-6: a child's group has a message that its parent's leader passed on early. The next leader
/// of the parent decides another in its place: the child must replace it, and deliver the first
/// only once the parent has ordered it anew.
#[test]
fn a_child_takes_one_message_of_two_parents_leaders() {
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

/// TRM-6: the first leader of the parent leads again, with another message at a position that it
/// has passed on early. Its rows towards the child must not show one message decided as another.
#[test]
fn a_parents_leader_that_leads_again_does_not_rewrite_its_rows() {
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

/// TRM-6: a child is out of reach for longer than its parent's log is. What the parent keeps for it
/// bounds what the parent takes.
#[test]
fn a_log_keeps_what_a_child_has_not_taken() {
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

/// The log of the parent is full of what comes behind a message that the child has not taken. Gives
/// that message, and the end of the log.
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

/// TRM-6: the next leader of the parent owes its children a null, which has to wait: it would
/// replace that message.
#[test]
fn a_new_leaders_null_waits_until_there_is_room() {
    let (mut script, first, tail) = full_log();
    script.leads(P[1], &P[1..]);
    script.does_come(&P[1..], &[], 40, |_| false);
    assert_eq!(script.world.log_control(P[1])[TAIL], tail, "there is no room");
    script.delivers(C[1], first, &[P[1], P[2], C[0], C[1], C[2]], &[]);
    script.end();
}

/// TRM-5, TRM-6: neither does the admission of a replica that comes back replace it.
#[test]
fn an_admission_waits_until_there_is_room() {
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

/// Nor is it the peers' fault. Replica 2 is silent from some time on, and everything that was
/// written to its log is there: it does not hold the log up, and keeps its connection.
#[test]
fn a_full_log_ends_no_connection_of_a_peer_that_does_not_hold_it_up() {
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
            // Its posts to the other replicas have not landed when it looks again.
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

/// TRM-6: the parent's leader leads anew, and its row has what it passed on before, at the same
/// position. The connection to the child stays as it is.
#[test]
fn a_parents_leader_that_leads_again_keeps_a_row_that_is_right() {
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

/// TRM-9: a child's replica asks for the payload of a position that it has taken. Its slot has a
/// later message by now, whose payload must not be replaced by that one.
#[test]
fn what_a_child_asks_for_late_replaces_no_other_payload() {
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
    // Too short for references.
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

/// TRM-1: messages wait for no round trip to the child, as long as it has room for them.
#[test]
fn a_parent_passes_on_a_whole_window_at_once() {
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

/// TRM-6: replica 0 has a snapshot, and not yet the entry below it that the child lacks. It must
/// not lead before it has that.
#[test]
fn a_replica_with_a_snapshot_does_not_lead_before_its_log_is_whole() {
    let mut script = Script::new(&[None, Some(0)]);
    script.leads(P[1], &P[1..]);
    // The child has all that came before M.
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

/// The parent's leader passes a message on while it alone has it, and is lost with the client.
/// Nothing more goes from the parent to the child. What a client multicasts to the child alone must
/// not wait behind the lost message.
#[test]
fn a_lost_message_that_was_passed_on_does_not_hold_up_the_child() {
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

/// The parent's leader passes two messages on while it alone has them, and is deposed. The next one
/// orders a null at the position of the first, and nothing at that of the second. The child must
/// not take the second: what a client multicasts to the child alone would wait behind it.
#[test]
fn what_a_deposed_leader_passed_on_is_not_taken_behind_the_next_ones_null() {
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

/// TRM-1: only a child's leader can use a message of its parent, so it is served alone, and before
/// anybody else. A replica that leads later gets what its group lacks.
#[test]
fn a_childs_leader_alone_is_served_and_before_all_others() {
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

/// TRM-1: a replica that has come back is shown by the child's leader that it leads.
#[test]
fn a_parents_leader_that_is_new_to_a_child_serves_its_leader_first() {
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

/// TRM-1: what the parent has ordered since a child's replica last led is not gone through entry by
/// entry once it leads again: its group has decided what the log has dropped.
#[test]
fn a_child_that_follows_another_leader_is_served_at_once() {
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

/// TRM-1: where all replicas of a child are served, as in the paper, the others get a message once
/// it is decided, and whoever leads them then needs nothing more of the parent.
#[test]
fn a_childs_other_replicas_may_be_served_too() {
    let mut script = Script::serving_all(&[None, Some(0)]);
    let (leader, message) = served_first(&mut script);
    assert_eq!(leader, C[0]);
    script.moves(&P[..1], &[P[0], C[1], C[2]], 20);
    script.world.crash_replica(C[0]);
    script.delivers(C[1], message, &C[1..], &[]);
    script.world.start_replica(C[0], false);
    script.end();
}

/// TRM-1: the parent passes on as much as the child has room for. The child says how much it has
/// taken before that room is full: else the parent would wait for the child's next heartbeat.
#[test]
fn a_child_makes_room_for_its_parent_without_a_heartbeat() {
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

/// The parent's leader orders a message, and its group decides it. Of the child, the leader is
/// written to ahead of all others; the rest is not, or not before. Gives it with the message.
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
