//! TRM-9: the payloads that replicas keep for entries with references, and what they publish about
//! them.

use tramontane_core::ids::{ClientNumber, Rank};
use tramontane_core::tram::{LinkId, LinkRole, ReplicaId, ReplicaLinks};

use super::script::{C, DECIDED, P, Script, TAIL, both, here};
use crate::world::World;

/// Offsets of the cells in a replica's row that tell a peer the position below which it has all
/// bodies, and for which leader.
const BODIES: usize = 120;
const REPORTS_FOR: usize = 136;

/// Makes a replica request all logs, with a higher timestamp than any previous leader's.
fn asks(script: &mut Script, id: ReplicaId, among: &[ReplicaId]) {
    let all = script.world.replicas.values();
    let before = all.map(|running| running.replica.promised()).max();
    script.among(among, &[], |world| Some(world.replicas[&id].replica.promised()) > before);
}

/// Replica 1 has X and its payload, under leader 0. It copies the log of leader 2, which has Y in
/// X's position and crashes when the payload of Y has landed. Leader 0 returns with X. Replica 1
/// must not mistake the payload of Y for that of X.
#[test]
fn overwritten_payload_is_not_delivered() {
    let mut script = Script::by_reference_of(5, 2);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let place = script.world.log_control(P[0])[TAIL];
    let x = script.multicast(0, here());
    script.among(&P[..2], &[0], |world| {
        world.ordered_at(P[1], place) == Some(x) && world.has_bytes(P[1], x)
    });
    script.leads(P[2], &[P[2], three, four]);
    let y = script.ordered_by(P[2], 1, here());
    script.world.crash_client(ClientNumber(1));
    asks(&mut script, P[1], &[P[1], three, four]);
    script.among(&[P[1], P[2], three], &[], |world| world.reads_payloads(P[1]));
    while script.world.reads_payloads(P[1]) {
        assert!(script.world.network.borrow_mut().deliver_if_any_can());
    }
    assert!(script.world.has_bytes(P[1], y) && !script.world.has_bytes(P[1], x));
    script.world.crash_replica(P[2]);
    let rest = [P[0], P[1], four];
    asks(&mut script, P[0], &[P[0], three, four]);
    script.leads(P[0], &rest);
    script.delivers(P[1], x, &rest, &[]);
    script.end();
}

/// A child's leader waits for the payload of one message, which finally arrives, and then for that
/// of the next. It requests neither from the parent, because it has not yet waited long for the
/// second.
#[test]
fn child_waits_for_each_payload_separately() {
    const WANTED: usize = 24;
    let mut script = Script::by_reference(&[None, Some(0)]);
    let all = script.world.ids();
    script.does_come(&all, &[0, 1], 100, |_| false);
    let links = ReplicaLinks::of(script.world.overlay, C[0].group);
    let link = links.find(LinkRole::Parent(P[0].rank)).expect("a link");
    let tail = script.world.log_control(C[0])[TAIL];
    let [a, b] = [0, 1].map(|_| script.multicast(0, both()));
    for message in [a, b] {
        script.delivers(P[0], message, &P, &[0]);
    }
    script.moves(&all, &all, 300);
    script.world.allow_only(&C[..1], &[ClientNumber(0)]);
    while script.world.log_control(C[0])[TAIL] == tail {
        assert!(script.world.network.borrow_mut().deliver_if_any_can());
        script.world.step_replica(C[0]);
    }
    script.moves(&all, &all, 100);
    assert_eq!(script.world.log_control(C[0])[TAIL], tail + 1);
    assert_eq!(script.world.shown(C[0], link, WANTED), 0);
    script.delivers(C[0], b, &all, &[]);
    assert!(script.world.shown(C[0], link, WANTED) > 0);
    script.end();
}

/// No entry of these logs refers to a payload.
#[test]
fn follower_publishes_no_payload_for_plain_entries() {
    let mut script = Script::by_reference(&[None]);
    script.moves(&P, &P, 4);
    let shown = |cell: usize| script.world.shown(P[1], LinkId(0), cell);
    assert_eq!([BODIES, REPORTS_FOR].map(shown), [0, 0]);
    script.end();
}

/// Replica 1 has shown a payload to leader 0. That leader yields to another leader and then leads
/// again, while replica 1 still has the same payloads. Replica 1 must publish them again, because
/// they are counted per term.
#[test]
fn follower_republishes_its_payloads_each_term() {
    let mut script = Script::by_reference_of(5, 2);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let a = script.multicast(0, here());
    let shown =
        |world: &World| [BODIES, REPORTS_FOR].map(|cell| world.shown(P[1], LinkId(0), cell));
    script.among(&P[..2], &[0], |world| shown(world)[0] > 0);
    script.moves(&P[..2], &P[..2], 4);
    let before = shown(&script.world);
    script.leads(P[1], &[P[1], P[2], three]);
    asks(&mut script, P[0], &[P[0], P[2], four]);
    script.leads(P[0], &P);
    assert!(!script.world.has_delivered(P[0], a));
    script.delivers(P[0], a, &P, &[0]);
    let after = shown(&script.world);
    assert!(after[0] == before[0] && after[1] > before[1], "{before:?}, then {after:?}");
    script.end();
}

/// A step takes the payload of one message, and delivers that message in the same step if it is
/// decided.
#[test]
fn step_copies_and_delivers_one_message() {
    let mut script = Script::by_reference_one_a_step(&[None]);
    let a = script.multicast(0, here());
    script.delivers(P[1], a, &P[..2], &[0]);
    let tail = script.world.log_control(P[0])[TAIL];
    script.among(&P, &[], |world| world.log_control(P[2])[DECIDED] == tail);
    script.world.allow_only(&P[2..], &[ClientNumber(0)]);
    while script.world.network.borrow_mut().deliver_if_any_can() {}
    assert!(!script.world.has_bytes(P[2], a));
    script.world.step_replica(P[2]);
    assert!(script.world.has_delivered(P[2], a));
    assert_eq!(script.world.carried, 0);
    script.end();
}

/// A follower has three payloads, and the header of one of the first two is corrupt in its log. Its
/// leader must not count the later payloads, because the follower does not know which one it lacks.
#[test]
fn payloads_after_a_corrupt_header_do_not_count() {
    for spoilt in [0, 1] {
        let mut script = Script::by_reference(&[None]);
        let place = script.world.log_control(P[0])[TAIL];
        let messages = [0; 3].map(|client| script.multicast(client, here()));
        script.among(&P[..1], &[0], |world| world.log_control(P[0])[TAIL] == place + 3);
        script.among(&P[..2], &[], |world| world.log_control(P[1])[TAIL] == place + 3);
        let header = script.world.header_at(P[1], place + spoilt);
        script.world.poke_log(P[1], header, |mark| mark ^ 1 << 40);
        script.world.allow_only(&P[1..2], &[ClientNumber(0)]);
        script.world.step_client(ClientNumber(0));
        while script.world.network.borrow_mut().deliver_if_any_can() {}
        script.does_come(&P[..2], &[0], 100, |_| false);
        let delivered = messages.map(|message| script.world.has_delivered(P[0], message));
        assert_eq!(delivered, [spoilt == 1, false, false]);
    }
}
