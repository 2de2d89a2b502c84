//! TRM-4: histories of logs that differ by many entries: one replica has dropped entries that
//! another lacks.

use tramontane_core::ids::Rank;
use tramontane_core::tram::{MessageId, ReplicaId};

use super::script::{P, STAMP, Script, TAIL, here};
use crate::world::World;

/// Replica 0 is absent for exactly as many entries as a log holds. Leader 1 orders one more, which
/// reaches only replica 3. Replica 2 is about to copy it, and has its payload already, in the slot
/// of the payload of the first entry that replica 0 lacks. Then replica 0 reads replica 2's log,
/// where it must not find the old entry's header together with the new payload.
#[test]
fn replaced_payload_invalidates_the_old_entry() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let others = [P[1], P[2], three, four];
    script.leads(P[1], &others);
    let first = script.world.log_control(P[0])[TAIL];
    let entries = script.world.settings.log_entries;
    script.go_on(&others, 0, entries);
    let tail = script.world.log_control(P[1])[TAIL];
    assert_eq!(tail, first + u64::from(entries));
    script.multicast(1, here());
    script.among(&[P[1], three], &[1], |world| world.log_control(three)[TAIL] > tail);
    script.among(&[P[2], three, four], &[], |world| world.reads_payloads(P[2]));
    while script.world.reads_payloads(P[2]) {
        assert!(script.world.network.borrow_mut().deliver_if_any_can());
    }
    assert_eq!(script.world.log_control(P[2])[TAIL], tail);
    let last = script.world.ordered_at(four, tail - 1).expect("a message");
    let before = script.world.restored;
    script.delivers(P[0], last, &[P[0], P[2], four], &[]);
    assert!(script.world.restored > before, "nobody has that entry any more");
    script.end();
}

/// A replica returns after the log has wrapped a few times. The leader sends it the entries that
/// the log still has, and no earlier ones.
#[test]
fn late_replica_receives_entries_still_in_log() {
    let mut script = Script::new(&[None]);
    let messages = 3 * script.world.settings.log_entries;
    script.go_on(&P, 0, messages);
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    script.among(&P, &[], |world| world.replicas[&P[2]].replica.is_voter());
    script.end();
}

/// The fabric sometimes refuses a candidate's reads of payloads that it lacks. The candidate must
/// not lead with a header whose payload it has not read.
#[test]
fn refused_payload_read_is_retried() {
    let mut refusals = 0;
    for percent in [20, 50, 80] {
        let mut script = Script::new(&[None]);
        script.leads(P[1], &P[1..]);
        let last = script.go_on(&P[1..], 1, 20);
        script.world.network.borrow_mut().refuses = percent;
        script.delivers(P[0], last, &[P[0], P[2]], &[]);
        refusals += script.world.network.borrow().refusals;
        script.world.network.borrow_mut().refuses = 0;
        script.end();
    }
    assert!(refusals > 20, "{refusals}");
}

/// Replica 0 has an entry that it has not delivered. Replica 2 has that entry only by a snapshot,
/// because its log begins later; or it had the entry, and its log has wrapped since. Replica 0
/// needs a snapshot too, and must keep its entries until it has one, because they may have been
/// counted.
#[test]
fn candidate_keeps_entries_until_it_has_snapshot() {
    for by_snapshot in [true, false] {
        let mut script = Script::of(&[None], 5);
        let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
        let (all, others) = ([P[0], P[1], P[2], three, four], [P[1], P[2], three, four]);
        script.leads(P[1], &others);
        let stamp = |world: &World, id: ReplicaId| world.log_control(id)[STAMP];
        script.among(&all, &[], |world| stamp(world, P[0]) == stamp(world, P[1]));
        let before = script.world.log_control(P[0])[TAIL];
        let message = script.multicast(0, here());
        script.among(&all, &[0], |world| world.log_control(P[0])[TAIL] > before);
        let delivered = script.world.replicas[&P[0]].replica.delivered();
        assert!(!script.world.has_delivered(P[0], message));
        others.iter().for_each(|id| script.delivers(*id, message, &others, &[0]));
        if by_snapshot {
            comes_back_with_a_snapshot_of(&mut script, message);
            script.among(&others, &[], |world| world.replicas[&P[2]].replica.is_voter());
            script.go_on(&others, 1, 2);
        } else {
            let around = script.world.settings.log_entries + 4;
            script.go_on(&others, 1, around);
        }
        script.world.gives_snapshots = false;
        let needs = |world: &World| world.replicas[&P[0]].replica.needs_snapshot();
        script.among(&[P[0], P[2], four], &[], needs);
        assert_eq!(script.world.replicas[&P[0]].replica.delivered(), delivered);
        assert_eq!(script.world.log_control(P[0])[TAIL], before + 1, "{by_snapshot}");
        script.world.gives_snapshots = true;
        script.end();
    }
}

/// Restarts replica 2 until it has the snapshot of a replica that has delivered the message.
fn comes_back_with_a_snapshot_of(script: &mut Script, message: MessageId) {
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    while !script.world.has_delivered(P[2], message) {
        script.world.crash_replica(P[2]);
        script.world.start_replica(P[2], false);
    }
}
