//! Histories of clients that arrive, leave and return.

use tramontane_core::ids::ClientNumber;
use tramontane_core::tram::Answers;

use super::script::{DECIDED, P, Script, TAIL, here};
use crate::world::LEASE_NS;

/// TRM-7: all connections of a client break before a reply to its message arrives. The replicas
/// show their replies over the new connections; so does a replica that restored a snapshot instead
/// of delivering the message.
#[test]
fn reconnected_client_learns_which_replicas_delivered() {
    let mut script = Script::new(&[None]);
    let a = script.multicast_for(0, here(), Answers::All);
    let tail = script.world.log_control(P[0])[TAIL];
    script.among(&P[..2], &[0], |world| world.log_control(P[0])[TAIL] > tail);
    for id in [P[0], P[1]] {
        script.delivers(id, a, &P[..2], &[]);
    }
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    assert!(script.world.has_delivered(P[2], a), "its snapshot has it");
    for id in P {
        script.world.connect_client(ClientNumber(0), id);
    }
    assert!(!script.world.sent[&a].answered);
    script.among(&P, &[0], |world| world.sent[&a].answered);
    script.end();
}

/// TRM-7: replica 2 delivers a client's message after the client has restarted. Its reply must not
/// answer the message with the same number that the client multicasts now.
#[test]
fn reply_to_earlier_incarnation_does_not_count() {
    let mut script = Script::new(&[None]);
    let number = ClientNumber(0);
    script.world.crash_client(number);
    script.world.start_client(number);
    let before = script.multicast(0, here());
    for id in &P[..2] {
        script.delivers(*id, before, &P[..2], &[0]);
    }
    script.world.crash_client(number);
    script.world.start_client(number);
    script.delivers(P[2], before, &P, &[]);
    script.world.allow_only(&P, &[number]);
    for _ in 0..10 {
        P.iter().for_each(|id| script.world.step_replica(*id));
        while script.world.network.borrow_mut().deliver_if_any_can() {}
    }
    script.world.allow_only(&[], &[]);
    let message = script.multicast(0, here());
    assert_eq!(message.number, before.number);
    script.world.step_client(number);
    assert!(!script.world.sent[&message].answered);
    script.end();
}

/// TRM-7: a client's message is in the log of the next leader, which has not delivered it, and in
/// the client's ring there. It is ordered only once.
#[test]
fn successive_leaders_order_a_message_once() {
    let mut script = Script::new(&[None]);
    let a = script.multicast(0, here());
    let before = script.world.log_control(P[1]);
    script.among(&P[..2], &[0], |world| world.log_control(P[1])[TAIL] > before[TAIL]);
    assert_eq!(script.world.log_control(P[1])[DECIDED], before[DECIDED]);
    script.leads(P[1], &P[1..]);
    script.delivers(P[2], a, &P[1..], &[0]);
    let b = script.multicast(0, here());
    script.delivers(P[2], b, &P[1..], &[0]);
    script.end();
}

/// TRM-7: a client has written a message only to one replica when it restarts elsewhere. That
/// replica leads next, and has not met the client's new incarnation. The message is void.
#[test]
fn old_incarnations_unordered_message_is_discarded() {
    let mut script = Script::new(&[None]);
    let client = ClientNumber(0);
    let x = script.multicast(0, here());
    assert!(!script.does_come(&P[1..2], &[0], 20, |world| world.has_delivered(P[1], x)));
    script.world.silence_client(client);
    script.world.start_client_towards(client, &P[..1]);
    let y = script.multicast(0, here());
    script.delivers(P[1], y, &P[..2], &[0]);
    script.leads(P[1], &P[1..]);
    let is_ordered = script.does_come(&P[1..], &[], 300, |world| world.has_delivered(P[1], x));
    assert!(!is_ordered, "its client has come again");
    script.world.connect_client(client, P[1]);
    script.world.connect_client(client, P[2]);
    script.end();
}

/// TRM-7: a client's new connections take longer to open than its lease lasts. The client is still
/// running, so its registration is not closed.
#[test]
fn client_with_slow_connections_stays_registered() {
    let mut script = Script::new(&[None]);
    let number = ClientNumber(0);
    script.world.network.borrow_mut().is_slow_to_open = true;
    P.iter().for_each(|id| script.world.connect_client(number, *id));
    let begun = script.world.now;
    while script.world.now < begun + 3 * LEASE_NS {
        script.does_come(&P, &[1], 50, |_| false);
    }
    script.world.network.borrow_mut().is_slow_to_open = false;
    let message = script.multicast(0, here());
    script.delivers(P[2], message, &P, &[0, 1]);
    assert!(!script.world.clients[&number].client.is_closed());
    script.end();
}

/// TRM-7: a client is lost. Its registration is kept for the duration of its lease, and is then
/// closed.
#[test]
fn lost_client_stays_registered_until_lease_expires() {
    let mut script = Script::new(&[None]);
    script.world.crash_client(ClientNumber(0));
    script.world.allow_only(&[], &[]);
    let tail = |script: &mut Script, later: u64| {
        script.world.now += later;
        script.world.step_replica(P[0]);
        script.world.log_control(P[0])[TAIL]
    };
    let before = tail(&mut script, 0);
    assert_eq!(tail(&mut script, LEASE_NS), before, "it may come back still");
    assert_eq!(tail(&mut script, 1), before + 1);
    script.end();
}

/// TRM-7: a client has replies from followers, but none from the leader. A message that waits for
/// the leader's reply is not answered yet. A message that waits for any replica's reply is
/// answered, even if an earlier message still waits for the leader.
#[test]
fn followers_reply_answers_message_awaiting_any_replica() {
    let mut script = Script::new(&[None]);
    script.does_come(&P, &[0, 1], 40, |_| false);
    let [first, second] =
        [Answers::Leaders, Answers::OneOfEach].map(|to| script.multicast_for(0, here(), to));
    script.world.allow_only(&P, &[ClientNumber(0)]);
    let leader = script.world.process_of(P[0]).expect("it runs");
    let client = script.world.process_of_client(ClientNumber(0));
    script.world.network.borrow_mut().block(leader, client);
    for _ in 0..40 {
        script.world.step_client(ClientNumber(0));
        P.iter().for_each(|id| script.world.step_replica(*id));
        while script.world.network.borrow_mut().deliver_if_any_can() {}
        script.world.now += 400;
    }
    let answered = [first, second].map(|message| script.world.sent[&message].answered);
    assert_eq!(answered, [false, true]);
    script.end();
}

/// A client waits for its reply, whereas no process waits for the number of messages that the
/// followers may deliver. The reply is therefore posted first.
#[test]
fn leader_replies_to_client_before_informing_followers() {
    let mut script = Script::new(&[None]);
    script.does_come(&P, &[0, 1], 40, |_| false);
    let message = script.ordered_by(P[0], 0, here());
    script.world.allow_only(&P, &[ClientNumber(0)]);
    while script.world.network.borrow_mut().deliver_if_any_can() {}
    assert!(!script.world.has_delivered(P[0], message));
    script.world.step_replica(P[0]);
    assert!(script.world.has_delivered(P[0], message));
    let leader = script.world.process_of(P[0]).expect("it runs");
    let order = script.world.network.borrow().writes_in_order(leader);
    assert_eq!(order.first(), Some(&script.world.process_of_client(ClientNumber(0))));
    assert_eq!(order.len(), 3, "and to both followers");
    script.end();
}
