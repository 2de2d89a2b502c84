//! TRM-4: what a candidate waits for, and what it can do without.

use tramontane_core::ids::{ClientNumber, Rank};
use tramontane_core::tram::{LinkId, MessageId, ReplicaId, Stage, Timestamp};

use super::script::{P, Script, TAIL, here};
use crate::world::World;

fn promised(world: &World, id: ReplicaId) -> Timestamp {
    world.replicas[&id].replica.promised()
}

/// Lets replica 0 hear others before they hear it, so that it is the first to request all logs.
fn asks_first(script: &mut Script, reached: &[ReplicaId]) {
    let before = promised(&script.world, P[0]).max(promised(&script.world, P[2]));
    for _ in 0..400 {
        if promised(&script.world, P[0]) > before {
            return;
        }
        script.moves(&P[..1], reached, 1);
    }
    panic!("it does not ask");
}

/// Lets leader 1 decide a message, because enough others have its payload, although they do not
/// know that the message is decided. The leader and the client are lost. Replica 0 requests the
/// remaining replicas' logs.
fn decided_by_one_that_is_gone(
    mut script: Script,
    with: &[ReplicaId],
    rest: &[ReplicaId],
) -> (Script, MessageId) {
    script.leads(P[1], with);
    let message = script.multicast(0, here());
    script.delivers(P[1], message, with, &[0]);
    assert!(rest.iter().all(|id| !script.world.has_delivered(*id, message)));
    script.world.crash_client(ClientNumber(0));
    script.world.crash_replica(P[1]);
    asks_first(&mut script, rest);
    (script, message)
}

/// Replica 0 has read the logs of replicas 2 and 3. It asks replica 2 for the payload that replica
/// 3 lacks, or whether replica 2 has it, and the connection ends before the answer arrives. Replica
/// 0 hears enough others to continue. It must not conclude that the payload is lost everywhere.
#[test]
fn payload_of_an_unreachable_holder_is_not_abandoned() {
    for is_payload in [false, true] {
        let script = Script::by_reference_of(5, 2);
        let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
        let (with, rest) = ([P[1], P[2], four], [P[0], P[2], three, four]);
        let (mut script, message) = decided_by_one_that_is_gone(script, &with, &rest);
        let tail = script.world.log_control(P[0])[TAIL];
        script.among(&rest[..3], &[], |world| {
            let has_header = world.log_control(P[0])[TAIL] > tail;
            has_header && (!is_payload || world.reads_payloads(P[0]))
        });
        script.disconnect([P[0], P[2]]);
        script.moves(&P[..1], &[P[0], three, four], 10);
        assert!(!script.world.replicas[&P[0]].replica.is_leader());
        assert_eq!(script.world.given_up, 0);
        script.delivers(P[0], message, &rest, &[]);
        script.end();
    }
}

/// Replica 0 asks replica 2 for the payload repeatedly, because the connection keeps ending. A read
/// of an earlier campaign completes while the next campaign waits for the same payload.
#[test]
fn late_read_does_not_count_for_later_campaigns() {
    let script = Script::by_reference(&[None]);
    let (mut script, message) = decided_by_one_that_is_gone(script, &P[1..], &[P[0], P[2]]);
    let reader = script.world.process_of(P[0]).expect("it runs");
    let mut late = Vec::new();
    for _ in 0..3 {
        script.among(&[P[0], P[2]], &[], |world| world.reads_payloads(P[0]));
        for _ in 0..5 {
            let mut network = script.world.network.borrow_mut();
            late.iter().for_each(|token| network.complete(reader, *token));
            drop(network);
            script.moves(&P[..1], &P[..1], 1);
        }
        late.extend(script.world.network.borrow().reads(reader));
        assert!(script.world.reads_payloads(P[0]), "it waits");
        assert!(!script.world.replicas[&P[0]].replica.is_leader());
        assert_eq!(script.world.given_up, 0);
        script.disconnect([P[0], P[2]]);
        script.world.allow_only(&[], &[]);
        for _ in 0..6 {
            [P[0], P[2]].iter().for_each(|id| script.world.step_replica(*id));
            script.world.reconnect();
        }
        asks_first(&mut script, &[P[0], P[2]]);
    }
    script.delivers(P[0], message, &[P[0], P[2]], &[]);
    assert_eq!(script.world.fetched, 1);
    script.end();
}

/// Replica 0 lacks messages that the others have. It leads once it has read all their payloads, in
/// whatever order they arrive, but not when it has merely requested them.
#[test]
fn candidate_waits_for_all_payloads_in_any_order() {
    let mut script = Script::new(&[None]);
    script.leads(P[1], &P[1..]);
    let last = script.go_on(&P[1..], 1, 3);
    script.among(&[P[0], P[2]], &[], |world| world.reads_payloads(P[0]));
    script.moves(&P[..1], &P[..1], 4);
    script.world.network.borrow_mut().reads_last_first = true;
    script.world.allow_only(&[P[0], P[2]], &[]);
    for _ in 0..100 {
        script.world.network.borrow_mut().deliver_if_any_can();
        script.world.step_replica(P[0]);
    }
    script.delivers(P[0], last, &[P[0], P[2]], &[]);
    script.end();
}

/// Puts a write from leader 0 of five to replica 3 in flight. Replica 1 has asked the others for
/// their logs, and crashes. So leader 0 asks them again as well.
fn asks_again() -> (Script, [ReplicaId; 3]) {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    script.ordered_by(P[0], 0, here());
    script.leads(P[1], &[P[1], P[2], three, four]);
    script.world.crash_replica(P[1]);
    let reached = [P[0], P[2], four];
    asks_first(&mut script, &reached);
    (script, reached)
}

/// A write in flight to replica 3 reads the log of replica 0, which therefore waits before it leads
/// again. It abandons the connection after exactly one heartbeat.
#[test]
fn candidate_waits_one_heartbeat_for_writes_in_flight() {
    let (mut script, reached) = asks_again();
    let began = script.world.now - 200;
    script.does_come(&reached, &[], 15, |_| false);
    let heartbeat_ns = 5 * script.world.settings.heartbeat_ns;
    assert!(script.world.now < began + heartbeat_ns);
    for (waited, stage) in [(heartbeat_ns - 1, Stage::Ready), (heartbeat_ns, Stage::Absent)] {
        script.world.now = began + waited;
        script.world.step_replica(P[0]);
        assert_eq!(script.world.replicas[&P[0]].replica.stage(LinkId(3)), stage, "{waited}");
    }
    assert!(script.world.replicas[&P[0]].replica.is_leader());
    script.end();
}

/// Replica 3 has refused the write in the meantime, so replica 0 need not wait for it.
#[test]
fn candidate_does_not_wait_for_refused_writes() {
    let (mut script, reached) = asks_again();
    let three = ReplicaId { rank: Rank(3), ..P[0] };
    script.world.allow_only(&[P[0], three], &[]);
    let [from, to] = [three, P[0]].map(|id| script.world.process_of(id).expect("it runs"));
    script.world.network.borrow_mut().block(from, to);
    while script.world.network.borrow_mut().deliver_if_any_can() {}
    assert!(script.world.network.borrow().denials > 0);
    script.world.step_replica(P[0]);
    script.among(&reached, &[], |world| world.replicas[&P[0]].replica.is_leader());
    assert_eq!(script.world.replicas[&P[0]].replica.stage(LinkId(3)), Stage::Ready);
    script.end();
}

/// Leader 0 is lost, and no replica has the payload of a message that all have delivered, as can
/// happen after snapshots. The next leader continues without the payload.
#[test]
fn candidate_needs_no_payload_that_all_delivered() {
    let mut script = Script::by_reference(&[None]);
    let message = script.multicast(0, here());
    P.iter().for_each(|id| script.delivers(*id, message, &P, &[0]));
    script.world.crash_client(ClientNumber(0));
    let place = script.world.log_control(P[0])[TAIL] - 1;
    P.iter().for_each(|id| script.world.forget_body(*id, place));
    script.world.crash_replica(P[0]);
    script.leads(P[1], &P[1..]);
    assert_eq!((script.world.given_up, script.world.restored), (0, 0));
    let next = script.multicast(1, here());
    script.delivers(P[2], next, &P[1..], &[1]);
    script.end();
}

/// Replica 1 fetches a payload from replica 2, and then reads its name again to check that it is
/// whole. Reads may overtake each other. Meanwhile replica 2 grants its log to replica 0, and keeps
/// another payload in that slot. Replica 1 must not mistake it for the first.
#[test]
fn payload_replaced_during_a_fetch_is_not_delivered() {
    let mut script = Script::by_reference_of(5, 2);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let (others, first, second) =
        ([P[0], P[2], three, four], [P[1], P[2], three], [P[0], P[2], four]);
    let message = script.multicast(0, here());
    others.iter().for_each(|id| script.delivers(*id, message, &others, &[0]));
    script.world.crash_client(ClientNumber(0));
    script.among(&first, &[], |world| world.reads_payloads(P[1]));
    script.world.network.borrow_mut().reads_last_first = true;
    script.world.allow_only(&[P[1], P[2]], &[]);
    let reader = script.world.process_of(P[1]).expect("it runs");
    for _ in 0..20 {
        if script.world.network.borrow().reads(reader).len() == 1 {
            break;
        }
        script.world.network.borrow_mut().deliver_if_any_can();
    }
    assert!(script.world.reads_payloads(P[1]), "the payload comes last");
    let around = script.world.settings.log_entries + 4;
    script.go_on(&second, 1, around);
    script.does_come(&first, &[], 100, |_| false);
    script.end();
}
