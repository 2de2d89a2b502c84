//! Histories of replicas that have restored a snapshot and whose logs have gaps below it, or
//! entries that were never decided.

use tramontane_core::ids::Rank;
use tramontane_core::tram::{LinkId, ReplicaId};

use super::script::{C, P, STAMP, Script, TAIL, both, here};
use crate::world::World;

/// Two followers, one at a time, are absent for longer than a log lasts, and restore snapshots.
/// Their leader brings their logs up to date. When the leader is lost, one of them leads.
#[test]
fn followers_with_snapshots_can_lead() {
    for (tree, child) in [(&[None][..], &C[..0]), (&[None, Some(0)], &C)] {
        let mut script = Script::new(tree);
        let with_child = |ids: [ReplicaId; 2]| [&ids[..], child].concat();
        let stamp = script.world.log_control(P[0])[STAMP];
        let around = script.world.settings.log_entries + 4;
        for away in [2, 1] {
            let (there, back) = (with_child([P[0], P[3 - away]]), with_child([P[0], P[away]]));
            let before = script.world.restored;
            let mut last = script.multicast(0, here());
            for _ in 1..around {
                script.delivers(P[0], last, &there, &[0]);
                last = script.multicast(0, here());
            }
            script.delivers(P[0], last, &there, &[0]);
            script.among(&back, &[], |world| world.has_delivered(P[away], last));
            assert!(script.world.restored > before, "by a snapshot");
            script.does_come(&back, &[], 400, |_| false);
            assert_eq!(script.world.log_control(P[away]), script.world.log_control(P[0]));
        }
        assert_eq!(script.world.log_control(P[0])[STAMP], stamp, "it led all the time");
        script.world.crash_replica(P[0]);
        script.among(&P[1..], &[], |world| world.leader(P[0].group).is_some());
        script.world.start_replica(P[0], false);
        script.end();
    }
}

/// A host may supply a replica with a snapshot that it does not need, or no longer needs.
#[test]
fn unneeded_snapshot_is_refused() {
    let mut script = Script::new(&[None]);
    script.go_on(&P[..2], 0, 1);
    let before = script.world.replicas[&P[2]].replica.delivered();
    let newer = script.world.snapshot_of(P[0]);
    assert!(newer.cells[0] > before);
    assert!(!script.world.replicas[&P[2]].replica.wants_snapshot(&newer.cells));
    assert!(!script.world.give(P[2], &newer));
    assert_eq!(script.world.replicas[&P[2]].replica.delivered(), before);
    script.end();
}

/// A snapshot with too few or too many cells, or with impossible values, changes nothing.
#[test]
fn malformed_snapshot_is_refused() {
    let mut script = Script::new(&[None]);
    script.world.gives_snapshots = false;
    script.go_on(&P[..2], 0, 1);
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    let good = script.world.snapshot_of(P[0]);
    let mut too_many = good.cells.clone();
    too_many.push(0);
    let mut impossible = good.cells.clone();
    // The incarnation of the first client.
    impossible[2] = u64::MAX;
    let too_few = [0, 1, good.cells.len() - 1].map(|count| good.cells[..count].to_vec());
    for cells in too_few.into_iter().chain([too_many, impossible]) {
        assert!(!script.world.give_cells(P[2], &cells), "{cells:?}");
        assert_eq!(script.world.replicas[&P[2]].replica.delivered(), 0);
    }
    assert!(script.world.give(P[2], &good));
    assert_eq!(script.world.replicas[&P[2]].replica.delivered(), good.cells[0]);
    script.world.gives_snapshots = true;
    script.end();
}

/// Replicas 2 and 4 of five are absent for longer than a log lasts, and replica 4 has delivered
/// less. Replica 2 returns by a snapshot, and then leads. Its log has the entry that replica 4
/// lacks next, but a gap after that, so replica 4 needs a snapshot too.
#[test]
fn leader_sends_no_entries_below_a_log_gap() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let delivered = |script: &Script, id| script.world.replicas[&id].replica.delivered();
    script.go_on(&[P[0], P[1], P[2], three], 0, 3);
    assert!(delivered(&script, four) < delivered(&script, P[2]));
    let others = [P[0], P[1], three];
    let around = script.world.settings.log_entries + 8;
    let last = script.go_on(&others, 0, around);
    script.among(&[P[0], P[1], P[2], three], &[], |world| world.has_delivered(P[2], last));
    script.does_come(&[P[0], P[1], P[2], three], &[], 400, |_| false);
    script.world.crash_replica(P[0]);
    script.world.crash_replica(P[1]);
    script.among(&[P[2], three, four], &[], |world| {
        world.replicas[&P[2]].replica.is_leader() && world.has_delivered(four, last)
    });
    P[..2].iter().for_each(|id| script.world.start_replica(*id, false));
    script.end();
}

/// Leader 0 of five has X on its own log and that of replica 2. Leader 1 decides Y in its position
/// with replicas 3 and 4, and cuts X off the log of replica 0. Replica 2 returns by a snapshot once
/// the log has wrapped, and then leads. It must not send X to replica 0.
#[test]
fn leader_sends_no_entry_preceding_its_snapshot() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let place = script.world.log_control(P[0])[TAIL];
    let x = script.multicast(0, here());
    script.among(&[P[0], P[2]], &[0], |world| world.log_control(P[2])[TAIL] > place);
    assert_eq!(script.world.ordered_at(P[2], place), Some(x));
    let others = [P[1], three, four];
    script.leads(P[1], &others);
    let y = script.go_on(&others, 1, 1);
    assert_eq!(script.world.ordered_at(P[1], place), Some(y));
    script.among(&[P[0], P[1]], &[], |world| world.log_control(P[0])[TAIL] == place);
    let around = script.world.settings.log_entries + 8;
    let last = script.go_on(&others, 1, around);
    let back = [P[1], P[2], three, four];
    script.among(&back, &[], |world| world.has_delivered(P[2], last));
    script.does_come(&back, &[], 400, |_| false);
    assert_eq!(script.world.ordered_at(P[2], place), Some(x));
    script.leads(P[2], &back[1..]);
    script.delivers(P[0], last, &[P[0], P[2], three, four], &[]);
    script.end();
}

/// Leader 0 of five has A, B, X and Y on its own log and that of replica 2, and decides A and B
/// with replica 3. Leader 1 decides others in the positions of X and Y. Replica 2 has delivered
/// none of them. It restores a snapshot past them, and its log is brought up to date from there on.
/// Replica 0 reads that log, and must not regard X and Y as decided.
#[test]
fn candidate_ignores_entries_below_a_log_owners_snapshot() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let delivered = |world: &World, id| world.replicas[&id].replica.delivered();
    let place = script.world.log_control(P[0])[TAIL];
    let [_, b, ..] = [(); 4].map(|()| script.multicast(0, here()));
    script.among(&[P[0], P[2]], &[0], |world| world.log_control(P[2])[TAIL] == place + 4);
    script.world.allow_only(&[P[0], three], &[]);
    while !script.world.has_delivered(P[0], b) {
        assert!(script.world.network.borrow_mut().deliver_if_any_can());
        script.world.step_replica(P[0]);
    }
    assert_eq!(script.world.log_control(three)[TAIL], place + 2);
    let others = [P[1], three, four];
    script.leads(P[1], &others);
    script.go_on(&others, 1, 2);
    let end = place + 4;
    assert_eq!(delivered(&script.world, P[1]), end);
    let snapshot = script.world.snapshot_of(P[1]);
    let entries = script.world.settings.log_entries;
    script.go_on(&others, 1, entries - 3);
    script.world.gives_snapshots = false;
    let back = [P[1], P[2], three, four];
    script.among(&back, &[], |world| world.replicas[&P[2]].replica.needs_snapshot());
    assert_eq!(delivered(&script.world, P[2]), place);
    assert!(script.world.give(P[2], &snapshot));
    script.among(&back, &[], |world| world.log_control(P[2]) == world.log_control(P[1]));
    script.world.gives_snapshots = true;
    script.leads(P[0], &[P[0], P[2], four]);
    script.end();
}

/// Replica 2 learns that it lacks entries that its leader no longer has. The next leader has them.
/// Once replica 2 has delivered them, it needs no snapshot and asks for none.
#[test]
fn replica_that_catches_up_needs_no_snapshot() {
    const KEPT_FROM: usize = 56;
    let mut script = Script::new(&[None]);
    script.world.gives_snapshots = false;
    let message = script.multicast(0, here());
    script.delivers(P[1], message, &P[..2], &[0]);
    let tail = script.world.log_control(P[0])[TAIL];
    script.world.poke(P[2], LinkId(0), KEPT_FROM, tail);
    script.world.step_replica(P[2]);
    // A snapshot that is not newer than its own state does not help.
    let own = script.world.snapshot_of(P[2]);
    assert!(!script.world.give(P[2], &own));
    assert!(script.world.replicas[&P[2]].replica.needs_snapshot());
    script.leads(P[1], &P[1..]);
    script.delivers(P[2], message, &P[1..], &[]);
    assert!(!script.world.replicas[&P[2]].replica.needs_snapshot());
    script.world.gives_snapshots = true;
    script.end();
}

/// Here the group has a child, which has taken the null of leader 1 in the position of X. Then
/// replica 2 leads, and must not pass on Y, although Y is at the child's next position.
#[test]
fn parent_forwards_nothing_that_precedes_its_snapshot() {
    let mut script = Script::of(&[None, Some(0)], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let child: Vec<ReplicaId> =
        script.world.ids().into_iter().filter(|id| id.group == C[0].group).collect();
    let all = script.world.ids();
    script.does_come(&all, &[0, 1], 400, |_| false);
    let place = script.world.log_control(P[0])[TAIL];
    script.multicast(0, here());
    let b = script.multicast(0, here());
    let [x, y] = [(); 2].map(|()| script.multicast(0, both()));
    // The client of these messages does not reach replica 2.
    script.among(&P[..1], &[0], |world| world.log_control(P[0])[TAIL] == place + 4);
    script.among(&[P[0], P[2]], &[], |world| world.log_control(P[2])[TAIL] == place + 4);
    script.world.allow_only(&[P[0], three], &[]);
    while !script.world.has_delivered(P[0], b) {
        assert!(script.world.network.borrow_mut().deliver_if_any_can());
        script.world.step_replica(P[0]);
    }
    assert_eq!(script.world.log_control(three)[TAIL], place + 2);
    let others = [P[1], three, four];
    script.leads(P[1], &others);
    script.go_on(&others, 1, 1);
    script.does_come(&[&others[..], &child].concat(), &[], 400, |_| false);
    let end = place + 4;
    assert_eq!(script.world.replicas[&P[1]].replica.delivered(), end);
    let snapshot = script.world.snapshot_of(P[1]);
    let entries = script.world.settings.log_entries;
    // Leader 1 no longer has any entry below X.
    script.go_on(&others, 1, entries - 2);
    script.world.gives_snapshots = false;
    let back = [P[1], P[2], three, four];
    script.among(&back, &[], |world| world.replicas[&P[2]].replica.needs_snapshot());
    assert!(script.world.give(P[2], &snapshot));
    script.among(&back, &[], |world| world.log_control(P[2]) == world.log_control(P[1]));
    script.world.gives_snapshots = true;
    script.leads(P[2], &back[1..]);
    let n = script.multicast(1, both());
    script.delivers(C[1], n, &[&back[1..], &child].concat(), &[1]);
    let dead = [x, y].map(|message| script.world.has_delivered(C[1], message));
    assert_eq!(dead, [false; 2]);
    script.end();
}
