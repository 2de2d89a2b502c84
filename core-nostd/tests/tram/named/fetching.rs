//! TRM-9: a new leader fetches the payloads that its log refers to, even if its peers or its fabric
//! fail. A child may also request payloads that it does not lack.

use tramontane_core::ids::ClientNumber;
use tramontane_core::tram::{LinkId, LinkRole, MessageId, ReplicaLinks, Stage};

use super::script::{C, P, Script, TAIL, both, here};
use crate::world::{LEASE_NS, World};

/// Offset of the cell in a leader's row that tells a peer from which position the leader has the
/// entries that the peer's log lacks.
const KEPT_FROM: usize = 56;

/// Two of three replicas have delivered a message, and its client is lost. The third is about to
/// lead, but has only the header.
fn lacking_at_the_first() -> (Script, MessageId) {
    let mut script = Script::by_reference(&[None]);
    script.leads(P[1], &P[1..]);
    let a = script.multicast(0, here());
    for id in &P[1..] {
        script.delivers(*id, a, &P[1..], &[0]);
    }
    script.world.crash_client(ClientNumber(0));
    (script, a)
}

#[test]
fn refused_fetch_is_retried() {
    let mut refusals = 0;
    for percent in [20, 40, 60, 80] {
        let (mut script, a) = lacking_at_the_first();
        script.world.network.borrow_mut().refuses = percent;
        script.delivers(P[0], a, &[P[0], P[2]], &[]);
        assert_eq!(script.world.fetched, 1);
        refusals += script.world.network.borrow().refusals;
        script.world.network.borrow_mut().refuses = 0;
        script.end();
    }
    assert!(refusals > 20, "{refusals}");
}

/// The replica that was asked crashes during the fetch. The other one has the payload too.
#[test]
fn fetch_ends_if_the_source_replica_crashes() {
    let (mut script, a) = lacking_at_the_first();
    script.among(&[P[0], P[2]], &[], |world| world.reads_payloads(P[0]));
    script.world.crash_replica(P[2]);
    script.world.step_replica(P[0]);
    assert!(!script.world.replicas[&P[0]].replica.is_leader(), "half of it may be here");
    script.delivers(P[0], a, &P[..2], &[]);
    script.end();
}

/// Replica 1 crashes while replica 0 fetches from replica 2. Replica 1's log was not requested, so
/// its entries are not needed, and the campaign continues.
#[test]
fn fetch_continues_if_an_uninvolved_replica_crashes() {
    let (mut script, a) = lacking_at_the_first();
    script.among(&[P[0], P[2]], &[], |world| world.reads_payloads(P[0]));
    let promised = script.world.replicas[&P[0]].replica.promised();
    // Replicas 0 and 1 connect again, which changes nothing.
    script.world.allow_only(&[], &[]);
    let stage = |world: &World| world.replicas[&P[0]].replica.stage(LinkId(1));
    while stage(&script.world) != Stage::Ready {
        P[..2].iter().for_each(|id| script.world.step_replica(*id));
        script.world.reconnect();
    }
    assert!(script.world.reads_payloads(P[0]));
    script.world.crash_replica(P[1]);
    script.delivers(P[0], a, &[P[0], P[2]], &[]);
    let replica = &script.world.replicas[&P[0]].replica;
    assert!(replica.is_leader() && replica.promised() == promised, "by the same campaign");
    assert_eq!(script.world.fetched, 1);
    script.end();
}

/// No replica has the payload, but a voter publishes that it has delivered the entry. The replica
/// therefore lacks a decided message, and must not lead without it.
#[test]
fn candidate_never_abandons_a_delivered_reference() {
    const DELIVERED: usize = 40;
    let mut script = Script::by_reference(&[None]);
    let tails = P.map(|id| script.world.log_control(id)[TAIL]);
    script.ordered_by(P[0], 0, here());
    script.world.crash_client(ClientNumber(0));
    script.among(&P, &[], |world| (0..3).all(|at| world.log_control(P[at])[TAIL] > tails[at]));
    script.world.crash_replica(P[0]);
    script.world.gives_snapshots = false;
    for _ in 0..400 {
        script.world.poke(P[1], LinkId(2), DELIVERED, tails[1] + 1);
        script.does_come(&P[1..], &[], 1, |_| false);
        assert!(!script.world.replicas[&P[1]].replica.is_leader());
        if script.world.replicas[&P[1]].replica.needs_snapshot() {
            assert_eq!(script.world.given_up, 0);
            return;
        }
    }
    panic!("it never asks for a snapshot");
}

/// A child's replica asks for positions of short messages and nulls, for positions that it took
/// long ago, and for positions that do not exist yet.
#[test]
fn needless_payload_request_from_child_is_harmless() {
    const WANTED: usize = 24;
    for refuses in [0, 40] {
        let mut script = Script::by_reference(&[None, Some(0)]);
        script.world.network.borrow_mut().refuses = refuses;
        let mut sent = 0_u64;
        for turn in 0..60 {
            for parent in P {
                for rank in C.map(|id| id.rank) {
                    let links = ReplicaLinks::of(script.world.overlay, parent.group);
                    let link = links.find(LinkRole::Child { child: 0, rank }).expect("a link");
                    let near = (sent + 3).saturating_sub(u64::from(rank.0) + turn % 3);
                    let wanted = if turn % 7 == 6 { u64::MAX } else { near };
                    script.world.poke(parent, link, WANTED, wanted);
                }
            }
            let length = if turn % 2 == 0 { 8 } else { 40 };
            sent += u64::from(script.world.multicast(ClientNumber(1), both(), length).is_ok());
            script.does_come(&[P, C].concat(), &[1], 2, |_| false);
        }
        script.world.network.borrow_mut().refuses = 0;
        script.end();
    }
}

/// The client reaches only the parent and dies, and the fabric sometimes refuses the payloads that
/// the parent carries.
#[test]
fn refused_payload_is_resent_to_child() {
    let mut refusals = 0;
    for percent in [10, 30, 50] {
        let mut script = Script::by_reference(&[None, Some(0)]);
        let a = script.multicast(0, both());
        script.delivers(P[0], a, &P, &[0]);
        script.world.crash_client(ClientNumber(0));
        script.world.network.borrow_mut().refuses = percent;
        for id in C {
            script.delivers(id, a, &[P, C].concat(), &[]);
        }
        refusals += script.world.network.borrow().refusals;
        script.world.network.borrow_mut().refuses = 0;
        script.end();
    }
    assert!(refusals > 20, "{refusals}");
}

/// Two of three replicas have delivered a message, and its client is lost. The third received only
/// the header, and then a snapshot past it.
fn passed_by_a_snapshot() -> Script {
    let mut script = Script::by_reference(&[None]);
    let tail = script.world.log_control(P[2])[TAIL];
    let message = script.multicast(0, here());
    for id in &P[..2] {
        script.delivers(*id, message, &P[..2], &[0]);
    }
    script.world.crash_client(ClientNumber(0));
    script.among(&P, &[], |world| world.log_control(P[2])[TAIL] > tail);
    script.world.poke(P[2], LinkId(0), KEPT_FROM, tail + 1);
    script.among(&P[2..], &[], |world| world.has_delivered(P[2], message));
    assert!(!script.world.has_bytes(P[2], message));
    script
}

/// The replica publishes later entries only once it has the payload that it lacks. Its leader
/// therefore carries that payload.
#[test]
fn leader_carries_payload_that_a_snapshot_covers() {
    let mut script = passed_by_a_snapshot();
    script.world.crash_replica(P[1]);
    let message = script.multicast(1, here());
    script.delivers(P[2], message, &[P[0], P[2]], &[1]);
    assert_eq!(script.world.carried, 1);
    script.world.start_replica(P[1], false);
    script.end();
}

/// The leader lacks the payload too, as it may after a snapshot. The payload is no longer needed,
/// so later entries count without it.
#[test]
fn lost_payload_below_a_snapshot_blocks_nothing() {
    let mut script = passed_by_a_snapshot();
    script.world.crash_replica(P[1]);
    // The leader learns that replica 2 has delivered the entry.
    script.moves(&P[2..], &[P[0], P[2]], 2);
    let place = script.world.replicas[&P[0]].replica.delivered() - 1;
    script.world.forget_body(P[0], place);
    let message = script.multicast(1, here());
    script.delivers(P[2], message, &[P[0], P[2]], &[1]);
    assert_eq!(script.world.shown(P[0], LinkId(2), KEPT_FROM), 0, "it needs no other snapshot");
    script.world.start_replica(P[1], false);
    script.end();
}

/// A replica requests a payload once, and does nothing while it waits.
#[test]
fn payload_is_requested_once() {
    let mut script = passed_by_a_snapshot();
    script.moves(&P[2..], &P[2..], 5);
    let before = script.world.idle_steps;
    for _ in 0..20 {
        script.world.step_replica(P[2]);
    }
    assert_eq!(script.world.idle_steps - before, 20);
    script.end();
}

/// The replica requests a payload that a snapshot covers. Its leader is about to carry that
/// payload, but no longer has it when its fabric accepts posts again. Later the replica requests
/// another payload, whose client has died in the meantime. The leader carries the second payload.
#[test]
fn lost_payload_does_not_delay_the_next_payload() {
    let mut refusals = 0;
    for (percent, rounds) in [60, 80, 90].into_iter().flat_map(|one| (1..6).map(move |r| (one, r)))
    {
        let mut script = passed_by_a_snapshot();
        script.world.crash_replica(P[1]);
        let rest = [P[0], P[2]];
        let place = script.world.replicas[&P[0]].replica.delivered() - 1;
        let later = script.ordered_by(P[0], 1, here());
        let tail = script.world.log_control(P[0])[TAIL];
        script.among(&rest, &[], |world| world.log_control(P[2])[TAIL] == tail);
        script.world.network.borrow_mut().refuses = percent;
        script.moves(&rest, &rest, rounds);
        refusals += script.world.network.borrow().refusals;
        script.world.forget_body(P[0], place);
        script.world.network.borrow_mut().refuses = 0;
        script.moves(&rest, &rest, 40);
        script.world.crash_client(ClientNumber(1));
        let since = script.world.now;
        script.delivers(P[2], later, &rest, &[]);
        assert!(script.world.now - since < LEASE_NS / 2, "before an entry ends the client's place");
        script.world.start_replica(P[1], false);
        script.end();
    }
    assert!(refusals > 50, "{refusals}");
}
