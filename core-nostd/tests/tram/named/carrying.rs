//! TRM-9: when a leader carries payloads to a follower that lacks them, and which ones.

use tramontane_core::ids::ClientNumber;
use tramontane_core::tram::{Destinations, LinkId, MessageId, ReplicaId};

use super::script::{C, P, STAMP, Script, TAIL, both, here};
use crate::world::World;

/// Offset of the cell in a leader's row that tells a peer from which position the leader has the
/// entries that the peer's log lacks.
const KEPT_FROM: usize = 56;

/// Multicasts messages of a client in a world of short lists: each payload fills a list.
fn long(script: &mut Script, to: Destinations, count: usize) -> Vec<MessageId> {
    let client = ClientNumber(0);
    let mut one = || script.world.multicast(client, to, 190).expect("there is room");
    (0..count).map(|_| one()).collect()
}

/// Lets the parent deliver messages that the child lacks, and crashes their client. Then replica 2
/// returns by a snapshot past them.
fn coming_back() -> (Script, Vec<MessageId>) {
    let mut script = Script::by_reference_in_short_lists(&[None, Some(0)]);
    let messages = long(&mut script, both(), 4);
    for id in P {
        messages.iter().for_each(|message| script.delivers(id, *message, &P, &[0]));
    }
    script.world.crash_client(ClientNumber(0));
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    (script, messages)
}

fn lacks(world: &World, id: ReplicaId, messages: &[MessageId]) -> usize {
    messages.iter().filter(|message| !world.has_bytes(id, **message)).count()
}

/// A child may ask any voter for payloads.
#[test]
fn returning_replica_votes_once_it_has_all_payloads() {
    let (mut script, messages) = coming_back();
    script.among(&P, &[], |world| world.replicas[&P[2]].replica.is_voter());
    assert_eq!(lacks(&script.world, P[2], &messages), 0);
    script.end();
}

/// The connection to the leader ends when replica 2 has the headers but not the payloads. The next
/// connection brings the payloads, although the logs are equal.
#[test]
fn returning_replica_receives_payloads_for_known_headers() {
    let (mut script, messages) = coming_back();
    let stamp = script.world.log_control(P[0])[STAMP];
    script.among(&P, &[], |world| world.log_control(P[2])[STAMP] == stamp);
    assert!(lacks(&script.world, P[2], &messages) > 0);
    script.disconnect([P[0], P[2]]);
    script.among(&P, &[], |world| world.replicas[&P[2]].replica.is_voter());
    assert_eq!(lacks(&script.world, P[2], &messages), 0);
    script.end();
}

/// Replica 2 lacks the payload of one message, which its client finally sends, and then that of the
/// next. It has not lacked the second for long, so the leader carries neither yet.
#[test]
fn leader_waits_separately_before_carrying_each_payload() {
    let mut script = Script::by_reference(&[None]);
    let [a, b] = [0, 1].map(|_| script.multicast(0, here()));
    for message in [a, b] {
        script.delivers(P[1], message, &P[..2], &[0]);
    }
    script.moves(&P, &P, 150);
    script.world.allow_only(&P[2..], &[ClientNumber(0)]);
    while !script.world.has_delivered(P[2], a) {
        assert!(script.world.network.borrow_mut().deliver_if_any_can());
        script.world.step_replica(P[2]);
    }
    script.moves(&P, &P, 60);
    assert!(!script.world.has_delivered(P[2], b));
    assert_eq!(script.world.carried, 0);
    script.delivers(P[2], b, &P, &[]);
    assert_eq!(script.world.carried, 1);
    script.end();
}

/// A carried payload lands late, and by then replica 2 has long lacked the first of two payloads.
/// The leader carries the second next, and neither twice.
#[test]
fn payload_in_flight_is_not_resent() {
    let mut script = Script::by_reference_in_short_lists(&[None]);
    let messages = long(&mut script, here(), 2);
    for message in &messages {
        script.delivers(P[1], *message, &P[..2], &[0]);
    }
    script.world.crash_client(ClientNumber(0));
    script.among(&P, &[], |world| world.carried > 0);
    script.moves(&P, &P[..2], 250);
    assert_eq!(script.world.carried, 1);
    for message in &messages {
        script.delivers(P[2], *message, &P, &[]);
    }
    assert_eq!(script.world.carried, 2);
    script.end();
}

/// The child has a message, but the leader does not know that. Replica 2 has its header, and a
/// snapshot past it. No reachable replica has the payload. The leader and replica 2 connect again,
/// and replica 2 must learn that no payload will come; otherwise it would show no later payload.
#[test]
fn follower_learns_which_payload_will_never_come() {
    let mut script = Script::by_reference(&[None, Some(0)]);
    let tail = script.world.log_control(P[2])[TAIL];
    let a = script.multicast(0, both());
    script.delivers(P[0], a, &P[..2], &[0]);
    let place = script.world.replicas[&P[0]].replica.delivered() - 1;
    script.world.allow_only(&[P[0], C[0], C[1], C[2]], &[ClientNumber(0)]);
    for id in C {
        let [from, to] = [id, P[0]].map(|id| script.world.process_of(id).expect("it runs"));
        script.world.network.borrow_mut().block(from, to);
    }
    for _ in 0..40 {
        for id in [P[0], C[0], C[1], C[2]] {
            script.world.step_replica(id);
            while script.world.network.borrow_mut().deliver_if_any_can() {}
        }
        script.world.now += 200;
    }
    assert!(C.iter().all(|id| script.world.has_delivered(*id, a)));
    script.world.crash_client(ClientNumber(0));
    script.among(&P, &[], |world| world.log_control(P[2])[TAIL] > tail);
    script.world.poke(P[2], LinkId(0), KEPT_FROM, place + 1);
    script.among(&P[2..], &[], |world| world.has_delivered(P[2], a));
    script.moves(&P[2..], &[P[0], P[2]], 2);
    script.world.forget_body(P[0], place);
    script.disconnect([P[0], P[2]]);
    let b = script.multicast(1, here());
    script.delivers(P[2], b, &[P[0], P[2]], &[1]);
    assert!(!script.world.has_bytes(P[2], a));
    script.end();
}
