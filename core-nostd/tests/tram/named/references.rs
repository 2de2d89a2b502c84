//! TRM-9: histories of entries that refer to payloads, which clients send to each replica. The
//! messages of these scripts are long enough for that.

use tramontane_core::ids::{ClientNumber, GroupId, Rank};
use tramontane_core::tram::{Destinations, LinkId, LinkRole, MessageId, ReplicaId, ReplicaLinks};

use super::script::{C, P, Script, TAIL, both, here};
use crate::world::{LEASE_NS, World};

/// Multicasts a message that reaches only the leader, and crashes its client.
fn known_to_the_leader_alone(script: &mut Script, to: Destinations) -> MessageId {
    let message = script.ordered_by(P[0], 0, to);
    script.world.crash_client(ClientNumber(0));
    message
}

/// The client reaches only the leader and dies; the leader delivers and dies. A quorum must have
/// the payload, not only the header.
#[test]
fn leader_does_not_deliver_an_unreplicated_payload() {
    let mut script = Script::by_reference(&[None]);
    let a = known_to_the_leader_alone(&mut script, here());
    script.delivers(P[0], a, &P, &[]);
    assert!(P[1..].iter().any(|id| script.world.has_bytes(*id, a)), "a quorum has it");
    script.world.crash_replica(P[0]);
    for id in &P[1..] {
        script.delivers(*id, a, &P[1..], &[]);
    }
    script.end();
}

/// The client reaches only the leader and dies. The leader writes the header to its followers' logs
/// and dies. The next leader finds the header there, but no replica has the payload: the entry was
/// never decided.
#[test]
fn undecided_reference_without_payload_is_abandoned() {
    let mut script = Script::by_reference(&[None]);
    let tails = P.map(|id| script.world.log_control(id)[TAIL]);
    let a = known_to_the_leader_alone(&mut script, here());
    script.among(&P, &[], |world| (0..3).all(|at| world.log_control(P[at])[TAIL] > tails[at]));
    script.world.crash_replica(P[0]);
    script.leads(P[1], &P[1..]);
    assert_eq!(script.world.given_up, 1);
    let b = script.multicast(1, here());
    script.delivers(P[2], b, &P[1..], &[1]);
    assert!(P[1..].iter().all(|id| !script.world.has_delivered(*id, a)));
    script.end();
}

/// The client reaches two of three replicas and dies. The third gets the header, and must not
/// deliver the message before it has the payload.
#[test]
fn follower_gets_a_missing_payload_before_delivery() {
    let mut script = Script::by_reference(&[None]);
    let a = script.multicast(0, here());
    script.delivers(P[1], a, &P[..2], &[0]);
    script.world.crash_client(ClientNumber(0));
    assert_eq!(script.world.carried, 0);
    script.delivers(P[2], a, &P, &[]);
    assert!(script.world.carried > 0);
    script.end();
}

/// As before, but the third replica lacks its rows in the steps after the header has landed.
#[test]
fn missing_rows_only_delay_payload_requests() {
    let mut script = Script::by_reference(&[None]);
    let a = script.multicast(0, here());
    script.delivers(P[1], a, &P[..2], &[0]);
    script.world.crash_client(ClientNumber(0));
    script.moves(&P[..1], &P, 4);
    let tail = script.world.log_control(P[0])[TAIL];
    assert_eq!(script.world.log_control(P[2])[TAIL], tail, "it has the header");
    script.world.settings.hides = 100;
    script.moves(&P[2..], &P, 3);
    script.world.settings.hides = 0;
    script.does_come(&P[..1], &[], 1, |_| false);
    assert_eq!(script.world.carried, 0, "nothing was asked for");
    script.delivers(P[2], a, &P, &[]);
    assert!(script.world.carried > 0);
    script.end();
}

/// The client is alive but sends nothing to the third replica, which therefore requests nothing.
/// The leader carries the payload once its patience ends, long before the client's lease does.
#[test]
fn leader_carries_a_withheld_payload_unasked() {
    let mut script = Script::by_reference(&[None]);
    let a = script.multicast(0, here());
    script.delivers(P[1], a, &P[..2], &[0]);
    let since = script.world.now;
    script.delivers(P[2], a, &P, &[]);
    assert!(script.world.now - since < LEASE_NS / 2);
    assert_eq!(script.world.carried, 1);
    script.end();
}

/// Two messages lack their payloads, and a list to a log is so short that it carries only one. The
/// other payload goes with the next list.
#[test]
fn payload_that_does_not_fit_uses_next_list() {
    let mut script = Script::by_reference_in_short_lists(&[None]);
    let mut long = || script.world.multicast(ClientNumber(0), here(), 190).expect("there is room");
    let messages = [long(), long()];
    for message in messages {
        script.delivers(P[1], message, &P[..2], &[0]);
    }
    script.world.crash_client(ClientNumber(0));
    assert_eq!(script.world.carried, 0);
    for message in messages {
        script.delivers(P[2], message, &P, &[]);
    }
    assert_eq!(script.world.carried, 2, "each once");
    script.end();
}

/// Two of three replicas have delivered a message. Its client dies, and one of the two replicas is
/// lost. The third replica leads: it takes the header from the other's log, and must fetch the
/// payload.
#[test]
fn new_leader_fetches_payloads_missing_from_its_log() {
    let mut script = Script::by_reference(&[None]);
    script.leads(P[1], &P[1..]);
    let a = script.multicast(0, here());
    for id in &P[1..] {
        script.delivers(*id, a, &P[1..], &[0]);
    }
    script.world.crash_client(ClientNumber(0));
    script.delivers(P[0], a, &[P[0], P[2]], &[]);
    script.world.crash_replica(P[1]);
    assert_eq!(script.world.leader(GroupId(0)), Some(P[0]));
    assert_eq!(script.world.fetched, 1);
    script.end();
}

/// The client reaches the parent and dies. The child's leader finds a reference in the parent's
/// ring, and no replica of the child has the payload, so the parent carries it.
#[test]
fn child_fetches_missing_payload_from_parent() {
    let mut script = Script::by_reference(&[None, Some(0)]);
    let a = script.multicast(0, both());
    script.delivers(P[0], a, &P, &[0]);
    script.world.crash_client(ClientNumber(0));
    let all = [P, C].concat();
    for id in C {
        script.delivers(id, a, &all, &[]);
    }
    script.does_come(&all, &[], 40, |_| false);
    assert!(script.world.carried <= 3, "once to each replica of the child, at most");
    script.end();
}

/// Replicas of the parent return, one at a time, by snapshots past a message that the child lacks
/// and whose client is dead. Then the last replica that had the message dies. The child must still
/// receive it.
#[test]
fn child_gets_messages_covered_by_a_snapshot() {
    let mut script = Script::by_reference(&[None, Some(0)]);
    let a = script.multicast(0, both());
    for id in &P[..2] {
        script.delivers(*id, a, &P[..2], &[0]);
    }
    script.world.crash_client(ClientNumber(0));
    script.delivers(P[2], a, &P, &[]);
    for id in &P[1..] {
        script.world.crash_replica(*id);
        script.world.start_replica(*id, false);
        assert!(script.world.has_delivered(*id, a), "its snapshot has it");
        script.among(&P, &[], |world| world.replicas[id].replica.is_voter());
    }
    script.world.crash_replica(P[0]);
    let rest = [P[1], P[2], C[0], C[1], C[2]];
    script.delivers(C[0], a, &rest, &[]);
    script.end();
}

/// The client's posts to a replica are read only when they land. In the meantime all other replicas
/// answer this message and a further window of messages. The client must not send another body in
/// its place.
#[test]
fn undelivered_payload_is_not_replaced() {
    let mut script = Script::by_reference(&[None]);
    script.world.network.borrow_mut().reads_late = true;
    let window = script.world.settings.window;
    let a = script.multicast(0, here());
    for id in &P[..2] {
        script.delivers(*id, a, &P[..2], &[0]);
    }
    for _ in 0..window {
        let next = script.multicast(0, here());
        script.among(&P[..2], &[0], |world| world.sent[&next].answered);
    }
    let leads = script.world.leader(GroupId(0)).expect("a leader");
    let tail = script.world.log_control(leads)[TAIL];
    script.among(&P, &[], |world| world.log_control(P[2])[TAIL] == tail);
    assert!(!script.world.has_delivered(P[2], a), "it has no body yet");
    script.world.allow_only(&P[2..], &[ClientNumber(0)]);
    for _ in 0..40 {
        script.world.network.borrow_mut().deliver_if_any_can();
        script.world.step_replica(P[2]);
    }
    script.end();
}

/// A client has reached two of three replicas. The third gets the header before the payload, and
/// waits: if the leader carried payloads that a client is still sending, each long message would be
/// sent twice.
#[test]
fn follower_waits_for_the_client_before_asking() {
    const ASKS: usize = 16;
    let mut script = Script::by_reference(&[None]);
    let a = script.multicast(0, here());
    script.delivers(P[0], a, &P[..2], &[0]);
    let tail = script.world.log_control(P[0])[TAIL];
    script.among(&P, &[], |world| world.log_control(P[2])[TAIL] == tail);
    script.moves(&P, &P, 10);
    assert_eq!(script.world.shown(P[2], LinkId(0), ASKS), 0);
    assert!(!script.world.has_delivered(P[2], a));
    script.delivers(P[2], a, &P, &[0]);
    assert_eq!(script.world.carried, 0);
    script.end();
}

/// A follower lacks payloads that a dead client has not sent, and one that another client may still
/// be sending. A list carries as many of the first as it has room for, and not the other.
#[test]
fn list_carries_only_requested_payloads() {
    for lost in [1, 2] {
        let mut script = Script::by_reference(&[None]);
        let gone: Vec<MessageId> = (0..lost).map(|_| script.multicast(0, here())).collect();
        gone.iter().for_each(|id| script.delivers(P[1], *id, &P[..2], &[0]));
        script.world.crash_client(ClientNumber(0));
        let comes = script.multicast(1, here());
        script.delivers(P[1], comes, &P[..2], &[1]);
        script.world.allow_only(&P, &[]);
        let mut most = 0;
        for _ in 0..20 {
            for id in P {
                let before = script.world.carried;
                script.world.step_replica(id);
                most = most.max(script.world.carried - before);
                while script.world.network.borrow_mut().deliver_if_any_can() {}
            }
            script.world.now += 200;
        }
        assert_eq!((most, script.world.carried), (lost, lost));
        script.delivers(P[2], comes, &P, &[]);
        assert_eq!(script.world.carried, lost + 1, "the leader's patience ends all the same");
        script.end();
    }
}

/// A child's leader finds a reference in its parent's ring. It requests the payload from the parent
/// only after waiting too long for the client.
#[test]
fn child_waits_for_its_client_before_asking() {
    const WANTED: usize = 24;
    let mut script = Script::by_reference(&[None, Some(0)]);
    let all = script.world.ids();
    script.does_come(&all, &[0, 1], 100, |_| false);
    let links = ReplicaLinks::of(script.world.overlay, C[0].group);
    let link = links.find(LinkRole::Parent(P[0].rank)).expect("a link");
    let a = script.multicast(0, both());
    script.delivers(P[0], a, &P, &[0]);
    script.moves(&P, &all, 4);
    script.moves(&all, &all, 6);
    assert_eq!(script.world.shown(C[0], link, WANTED), 0);
    script.delivers(C[0], a, &all, &[]);
    assert!(script.world.shown(C[0], link, WANTED) > 0);
    script.end();
}

/// Two messages are at all replicas. A follower takes the payload of the first, and leaves the
/// other to its next step. Its leader must not count the other as present.
#[test]
fn payload_left_for_next_step_is_unpublished() {
    let mut script = Script::by_reference_one_a_step(&[None]);
    let messages = [script.multicast(0, here()), script.multicast(0, here())];
    script.world.allow_only(&P, &[ClientNumber(0)]);
    for _ in 0..8 {
        script.world.step_client(ClientNumber(0));
        while script.world.network.borrow_mut().deliver_if_any_can() {}
    }
    script.moves(&P[..1], &P, 4);
    script.moves(&P[1..2], &P, 1);
    script.moves(&P[..1], &P, 4);
    let delivered = messages.map(|message| script.world.has_delivered(P[0], message));
    let is_at_follower = messages.map(|message| script.world.has_bytes(P[1], message));
    assert_eq!((delivered, is_at_follower), ([true, false], [true, false]));
    script.end();
}

/// Replica 2 alone has taken A and B, under leader 0. Leader 1 orders X in A's position, followed
/// by B as before. X's client dies before it has reached replica 2, which asks for X, but not for
/// B, because it has B.
#[test]
fn follower_requests_only_missing_payloads() {
    const ASKS: usize = 16;
    let mut script = Script::by_reference_of(5, 3);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let (first, second) = ([P[0], P[2]], [P[1], three, four]);
    let place = script.world.log_control(P[0])[TAIL];
    let [a, b] = [0, 1].map(|client| script.multicast(client, here()));
    script.among(&first, &[0], |world| world.ordered_at(P[2], place) == Some(a));
    script.among(&first, &[1], |world| world.ordered_at(P[2], place + 1) == Some(b));
    script.among(&first, &[0, 1], |world| [a, b].iter().all(|one| world.has_bytes(P[2], *one)));
    script.leads(P[1], &second);
    let x = script.multicast(2, here());
    script.delivers(P[1], x, &second, &[2]);
    script.world.crash_client(ClientNumber(2));
    script.delivers(P[1], b, &second, &[1]);
    let ordered = [0, 1].map(|behind| script.world.ordered_at(P[1], place + behind));
    assert_eq!(ordered, [Some(x), Some(b)]);
    assert!(!script.world.has_bytes(P[2], x));
    // Replica 2 steps after each write, because its leader carries the missing payloads after the
    // headers.
    script.world.allow_only(&[P[1], P[2]], &[]);
    let asks = |world: &World| world.shown(P[2], LinkId(1), ASKS);
    for _ in 0..400 {
        script.world.step_replica(P[1]);
        while asks(&script.world) == 0 {
            script.world.step_replica(P[2]);
            if !script.world.network.borrow_mut().deliver_if_any_can() {
                break;
            }
        }
        script.world.now += 400;
    }
    assert_eq!(asks(&script.world), place + 1, "up to behind X");
    script.end();
}
