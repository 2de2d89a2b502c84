//! Histories of logs: the entries that leaders write to them, and the entries that candidates read
//! from them.

use std::cell::Cell;

use tramontane_core::ids::{GroupId, Rank};
use tramontane_core::tram::{LinkId, MessageId, ReplicaId, Stage};

use super::script::{DECIDED, P, STAMP, Script, TAIL, here};
use crate::world::World;

/// TRM-4: leader 1 puts A only on its own log, and leader 2 puts B only on its own. Leader 3 takes
/// A and delivers it. Leader 4 finds A and B, and must take A.
#[test]
fn later_leaders_choice_overrides_an_earlier_entry() {
    let mut script = Script::new(&[None]);
    let a = script.ordered_by(P[0], 0, here());
    script.leads(P[1], &P[1..]);
    script.ordered_by(P[1], 1, here());
    script.delivers(P[0], a, &[P[0], P[2]], &[]);
    script.leads(P[1], &P[1..]);
    script.delivers(P[1], a, &P[1..], &[]);
    script.end();
}

/// TRM-4: leader 1 alone has X and Y. Leader 2 decides Y in X's position. Leader 3, which is the
/// same replica as leader 1, must take Y only once.
#[test]
fn message_at_two_log_positions_is_ordered_once() {
    let mut script = Script::new(&[None]);
    script.ordered_by(P[0], 0, here());
    let y = script.ordered_by(P[0], 1, here());
    script.leads(P[1], &P[1..]);
    script.delivers(P[1], y, &P[1..], &[1]);
    script.delivers(P[0], y, &[P[0], P[2]], &[]);
    script.end();
}

/// TRM-3: a deposed leader has a dead entry, and grants its log late. It then sees a decided count,
/// which must not make it deliver that entry.
#[test]
fn replica_granting_late_delivers_no_superseded_entry() {
    let mut script = Script::new(&[None]);
    script.ordered_by(P[0], 0, here());
    script.leads(P[1], &P[1..]);
    let mut last = None;
    for _ in 0..3 {
        let message = script.multicast(1, here());
        script.delivers(P[2], message, &P[1..], &[1]);
        last = Some(message);
    }
    script.delivers(P[0], last.expect("three"), &P[..2], &[]);
    script.end();
}

/// TRM-3: a leader dies while it writes its stamp to a follower's log. A log with its stamp must
/// have all entries decided before.
#[test]
fn stamped_log_contains_all_entries_decided_before() {
    let mut script = Script::new(&[None]);
    for _ in 0..3 {
        let message = script.multicast(0, here());
        script.delivers(P[0], message, &P[..2], &[0]);
    }
    script.leads(P[1], &P[1..]);
    let stamp = script.world.replicas[&P[1]].replica.promised().cell();
    script.among(&P[1..], &[], |world| world.log_control(P[2])[STAMP] == stamp);
    script.leads(P[0], &[P[0], P[2]]);
    let b = script.multicast(1, here());
    script.delivers(P[2], b, &[P[0], P[2]], &[1]);
    script.end();
}

/// TRM-3: of five replicas, four have decided A. Leader 1's write of A to replica 4 is in flight,
/// and is read from leader 1's log as it lands: the header has landed, but the payload has not.
/// Leader 2 fills the logs once around, including that of leader 1. Replica 4 must not deliver A
/// with the bytes of another message.
#[test]
fn write_in_flight_never_mixes_two_leaders_entries() {
    let mut script = Script::of(&[None], 5);
    let [three, last] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let four = [P[0], P[1], P[2], three];
    script.world.network.borrow_mut().reads_late = true;
    let place = script.world.log_control(P[0])[TAIL];
    let a = script.multicast(0, here());
    for id in four {
        script.delivers(id, a, &four, &[0]);
    }
    script.world.allow_only(&[P[0], last], &[]);
    while script.world.ordered_at(last, place) != Some(a) {
        assert!(script.world.network.borrow_mut().deliver_if_any_can(), "its header comes there");
    }
    assert!(!script.world.has_bytes(last, a), "its payload has not landed");
    script.leads(P[1], &four[1..]);
    for _ in 0..script.world.settings.log_entries + 4 {
        let message = script.multicast(1, here());
        for id in four {
            script.delivers(id, message, &four, &[1]);
        }
    }
    script.world.allow_only(&[P[0], last], &[]);
    while script.world.network.borrow_mut().deliver_if_any_can() {}
    script.does_come(&[last], &[], 10, |_| false);
    script.end();
}

/// TRM-3: leader 1 alone has X and Y, and leader 2 has Y and Z. Leader 2 is cut off when it has
/// replaced X by Y in the log of leader 1, whose old entries must no longer count.
#[test]
fn partly_overwritten_log_does_not_count() {
    let mut script = Script::new(&[None]);
    let place = script.world.log_control(P[0])[TAIL];
    script.ordered_by(P[0], 0, here());
    let y = script.ordered_by(P[0], 1, here());
    script.leads(P[1], &P[1..]);
    let tail = script.world.log_control(P[1])[TAIL];
    script.among(&P[1..2], &[1], |world| world.log_control(P[1])[TAIL] > tail);
    script.among(&P[..2], &[], |world| world.ordered_at(P[0], place) == Some(y));
    script.leads(P[0], &[P[0], P[2]]);
    script.end();
}

/// TRM-4: of five replicas, leader 1 alone has X, and leader 2 has B and another entry on two logs,
/// which is not a quorum. Leader 1 is cut off when it has copied B. In its next campaign, without
/// B, it must not lead with X and the bytes of B.
#[test]
fn partly_copied_log_does_not_count() {
    let mut script = Script::of(&[None], 5);
    let [third, last] = [3, 4].map(|rank| ReplicaId { group: GroupId(0), rank: Rank(rank) });
    script.ordered_by(P[0], 0, here());
    script.leads(P[1], &[P[1], P[2], third]);
    let b = script.ordered_by(P[1], 1, here());
    script.ordered_by(P[1], 1, here());
    let own = script.world.log_control(P[1]);
    script.among(&P[1..], &[], |world| world.log_control(P[2])[..DECIDED] == own[..DECIDED]);
    script.among(&[P[0], P[2], last], &[], |world| world.has_bytes(P[0], b));
    script.leads(P[0], &[P[0], third, last]);
    let c = script.multicast(0, here());
    script.delivers(P[0], c, &[P[0], third, last], &[0]);
    script.end();
}

/// TRM-5: A is on replicas 0 and 1. Replica 1 returns without memory. Without replica 0 it must not
/// lead, nor let replica 2 lead.
#[test]
fn replica_without_memory_elects_no_leader() {
    let mut script = Script::new(&[None]);
    let a = script.multicast(0, here());
    script.delivers(P[0], a, &P[..2], &[0]);
    script.world.gives_snapshots = false;
    script.world.crash_replica(P[1]);
    script.world.start_replica(P[1], false);
    script.multicast(1, here());
    let has_led = script.does_come(&P[1..], &[1], 1_000, |world| {
        P[1..].iter().any(|id| world.replicas[id].replica.is_leader())
    });
    assert!(!has_led, "nobody there knows of A");
    script.world.gives_snapshots = true;
    script.end();
}

/// TRM-5: leader 1 of replicas 1 and 2 decides B. Replica 2 returns without memory, and grants its
/// log to replica 0, which does not know that it was deposed. They must decide nothing.
#[test]
fn replica_without_memory_decides_nothing() {
    let mut script = Script::new(&[None]);
    script.leads(P[1], &P[1..]);
    let b = script.multicast(1, here());
    script.delivers(P[1], b, &P[1..], &[1]);
    script.world.gives_snapshots = false;
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    let decided = script.world.log_control(P[0])[DECIDED];
    script.multicast(0, here());
    let has_decided = script.does_come(&[P[0], P[2]], &[0], 1_000, |world| {
        world.log_control(P[0])[DECIDED] > decided || world.replicas[&P[2]].replica.is_voter()
    });
    assert!(!has_decided, "nobody there knows of B");
    script.world.gives_snapshots = true;
    script.end();
}

/// TRM-6: replica 2 is unreachable, and writes to its log are in flight that are read as they land.
/// The others fill the log once around. A write that lands later must not carry entries of the next
/// lap.
#[test]
fn log_slot_is_not_reused_while_being_read() {
    let mut script = Script::new(&[None]);
    script.world.network.borrow_mut().reads_late = true;
    for _ in 0..script.world.settings.log_entries + 4 {
        let message = script.multicast(0, here());
        script.delivers(P[0], message, &P[..2], &[0]);
    }
    script.end();
}

/// TRM-6: replica 2 is stalled, and writes to its log still land. Until its heartbeat is overdue,
/// the leader reuses no slot whose entry replica 2 has not delivered.
#[test]
fn undelivered_slot_of_live_replica_is_not_reused() {
    let mut script = Script::new(&[None]);
    let delivered = script.world.log_control(P[2])[DECIDED];
    let limit = delivered + u64::from(script.world.settings.log_entries);
    script.world.pause(P[2], u64::MAX);
    // Each round sends as many messages as both windows hold, so the log is full before the
    // heartbeat is overdue.
    for _ in 0..8 {
        let last = [0, 1, 0, 1, 0, 1, 0, 1].map(|client| script.multicast(client, here()));
        let are_answered = |world: &World| last.iter().all(|id| world.sent[id].answered);
        if !script.does_come(&P, &[0, 1], 20, are_answered) {
            break;
        }
    }
    assert_eq!(script.world.log_control(P[0])[TAIL], limit, "the log is full");
    script.world.pause(P[2], 0);
    script.end();
}

/// TRM-6: the replica's peers reuse only slots below that count.
#[test]
fn replica_publishes_deliveries_in_the_same_step() {
    const DELIVERED: usize = 40;
    let mut script = Script::new(&[None]);
    let message = script.multicast(0, here());
    script.delivers(P[2], message, &P, &[0]);
    let delivered = script.world.replicas[&P[2]].replica.delivered();
    let shown = [0, 1].map(|peer| script.world.shown(P[2], LinkId(peer), DELIVERED));
    assert_eq!(shown, [delivered; 2]);
    script.end();
}

/// Replica 1 has copied the headers of a log granted to it, and its reads of payloads are in flight
/// when that log is granted to replica 0. Replica 0 fills the log once around. Replica 1 must not
/// lead with the payloads that it reads then.
#[test]
fn candidate_rejects_payloads_of_a_later_leader() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let (others, first, second) =
        ([P[0], P[2], three, four], [P[1], P[2], three], [P[0], P[2], four]);
    for _ in 0..3 {
        let message = script.multicast(0, here());
        for id in others {
            script.delivers(id, message, &others, &[0]);
        }
    }
    script.among(&first, &[], |world| world.reads_payloads(P[1]));
    for _ in 0..script.world.settings.log_entries + 4 {
        let message = script.multicast(1, here());
        script.delivers(P[0], message, &second, &[1]);
        script.delivers(P[2], message, &second, &[1]);
    }
    script.does_come(&first, &[], 100, |_| false);
    script.end();
}

/// TRM-4: replica 1 alone has X. Leader 2 decides Y at that position with two others, and is about
/// to replace X in the log of replica 1. Meanwhile replica 0 asks for that log. It must not read
/// the entries before the log is granted and the stamp of leader 2 afterwards, or X would count as
/// decided.
#[test]
fn log_is_not_read_before_it_is_granted() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    script.leads(P[1], &[P[1], P[2], three]);
    let place = script.world.log_control(P[1])[TAIL];
    script.ordered_by(P[1], 0, here());
    script.leads(P[2], &[P[2], three, four]);
    let y = script.multicast(1, here());
    for id in [P[2], three] {
        script.delivers(id, y, &[P[2], three, four], &[1]);
    }
    let stamp = script.world.log_control(P[2])[STAMP];
    let promised = script.world.replicas[&P[2]].replica.promised();
    script.among(&[P[1], P[2]], &[], |world| world.replicas[&P[1]].replica.promised() == promised);
    let asks = [P[0], P[1], three];
    script.among(&asks, &[], |world| world.replicas[&P[0]].replica.promised() > promised);
    script.moves(&[P[0], three], &asks, 40);
    script.moves(&[P[2]], &[P[1], P[2]], 40);
    assert_eq!(script.world.log_control(P[1])[STAMP], stamp, "it has leader 2's stamp");
    assert_eq!(script.world.ordered_at(P[1], place), Some(y));
    script.does_come(&asks, &[], 100, |_| false);
    script.end();
}

/// Replica 1 copies the log of replica 2, which loses its memory and returns. Replica 1 must not
/// use the new log of replica 2 as the rest of the copy.
#[test]
fn log_copy_ends_when_its_source_restarts() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let (others, next) = ([P[0], P[2], three, four], [P[1], P[2], three, four]);
    for _ in 0..3 {
        let message = script.multicast(0, here());
        for id in others {
            script.delivers(id, message, &others, &[0]);
        }
    }
    script.among(&next, &[], |world| world.reads_payloads(P[1]));
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    script.does_come(&next, &[], 100, |_| false);
    script.end();
}

/// Replica 1 has reads of payloads in flight, from a live replica, when a later candidate asks for
/// its log. It grants its log only once the reads have landed, because they would replace the next
/// leader's entries.
#[test]
fn log_is_granted_after_its_reads_have_landed() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let (others, next) = ([P[0], P[2], three, four], [P[1], P[2], three]);
    for _ in 0..3 {
        let message = script.multicast(0, here());
        for id in others {
            script.delivers(id, message, &others, &[0]);
        }
    }
    script.among(&next, &[], |world| world.reads_payloads(P[1]));
    let promised = |world: &World| world.replicas[&P[1]].replica.promised();
    let before = promised(&script.world);
    // The previous leader does not hear replica 1, and sees that it has been deposed, so it
    // requests all logs again.
    let without_it = [P[0], P[1], three, four];
    script.world.allow_only(&without_it, &[]);
    let [from, to] = [P[1], P[0]].map(|id| script.world.process_of(id).expect("it runs"));
    script.world.network.borrow_mut().block(from, to);
    for _ in 0..60 {
        for id in without_it {
            script.world.step_replica(id);
            while script.world.network.borrow_mut().deliver_if_any_can() {}
        }
        script.world.now += 200;
    }
    assert!(script.world.replicas[&P[0]].replica.promised() > before, "it asks");
    assert!(script.world.reads_payloads(P[1]) && promised(&script.world) == before);
    script.among(&[P[1], P[2]], &[], |world| promised(world) > before);
    assert!(!script.world.reads_payloads(P[1]));
    script.end();
}

/// Makes replica 0 lack `messages` messages that replicas 1 and 2 have delivered, until it reads
/// their payloads from replica 2. Returns the last message.
fn reads_of(messages: u32) -> (Script, MessageId) {
    let mut script = Script::new(&[None]);
    script.leads(P[1], &P[1..]);
    let last = script.go_on(&P[1..], 1, messages);
    script.among(&[P[0], P[2]], &[], |world| world.reads_payloads(P[0]));
    (script, last)
}

/// The reads of a campaign are bounded, however much it copies.
#[test]
fn candidate_reads_sixteen_payloads_at_a_time() {
    let (mut script, last) = reads_of(20);
    let most = Cell::new(0);
    script.among(&[P[0], P[2]], &[], |world| {
        most.set(world.payloads_read(P[0]).max(most.get()));
        world.has_delivered(P[0], last)
    });
    assert_eq!(most.get(), 16);
    script.end();
}

/// The payloads arrive so slowly, from a live replica, that the campaign is abandoned in the
/// meantime. No other campaign begins before all of them have landed, because they would land in a
/// log with other entries.
#[test]
fn next_campaign_waits_for_reads_to_land() {
    for landed in 0..3 {
        let (mut script, last) = reads_of(3);
        let promised = |world: &World| world.replicas[&P[0]].replica.promised();
        let before = promised(&script.world);
        script.world.allow_only(&[P[0], P[2]], &[]);
        script.world.step_replica(P[0]);
        let all = script.world.payloads_read(P[0]);
        while script.world.payloads_read(P[0]) > all - landed {
            assert!(script.world.network.borrow_mut().deliver_if_any_can());
        }
        let [from, to] = [P[0], P[2]].map(|id| script.world.process_of(id).expect("it runs"));
        script.world.network.borrow_mut().block(from, to);
        for _ in 0..400 {
            for id in [P[0], P[2]] {
                script.world.step_replica(id);
                while script.world.network.borrow_mut().deliver_if_any_can() {}
            }
            script.world.now += 1_000;
        }
        assert!(script.world.reads_payloads(P[0]) && promised(&script.world) == before, "{landed}");
        script.delivers(P[0], last, &[P[0], P[2]], &[]);
        script.end();
    }
}

/// The replica that is read falls silent, and the candidate abandons its connection. A read lands
/// during that very step. It must not count for a later campaign, whose payloads have not arrived.
#[test]
fn read_landing_during_disconnection_does_not_count() {
    let (mut script, last) = reads_of(3);
    let before = script.world.replicas[&P[0]].replica.promised();
    let [reader, silent] = [P[0], P[2]].map(|id| script.world.process_of(id).expect("it runs"));
    // Longer than the silence that causes suspicion, and shorter than the limit of a campaign.
    script.does_come(&P[..2], &[], 250, |_| false);
    assert!(script.world.reads_payloads(P[0]));
    // Replica 1 sends heartbeats until the campaign has taken too long.
    for _ in 0..400 {
        script.world.step_replica(P[1]);
        while script.world.network.borrow_mut().deliver_if_any_can() {}
        script.world.now += 2_000;
    }
    script.world.allow_only(&[P[0], P[2]], &[]);
    script.world.network.borrow_mut().block(silent, reader);
    script.world.network.borrow_mut().lands_within = 100;
    script.world.step_replica(P[0]);
    script.world.network.borrow_mut().lands_within = 0;
    let replica = &script.world.replicas[&P[0]].replica;
    assert!(replica.promised() > before, "it begins another campaign");
    assert_eq!(replica.stage(LinkId(2)), Stage::Absent, "it has given the connection up");
    assert!(script.world.network.borrow().events(reader) > 0, "of what has landed");
    script.delivers(P[0], last, &[P[0], P[2]], &[]);
    script.end();
}

/// A copied header has been lost when the entries are taken over. The replica does not lead with
/// the remaining entries, but copies everything again.
#[test]
fn corrupt_copied_header_ends_the_campaign() {
    let (mut script, last) = reads_of(3);
    let before = script.world.replicas[&P[0]].replica.promised();
    let place = script.world.log_control(P[2])[TAIL] - 2;
    let at = script.world.copied_header_at(P[0], P[2], place);
    assert_eq!(script.world.replicas[&P[0]].memory.cell_of_log(at), place + 1, "a header's mark");
    script.world.poke_log(P[0], at, |_| 0);
    script.delivers(P[0], last, &[P[0], P[2]], &[]);
    assert!(script.world.replicas[&P[0]].replica.promised() > before, "by another campaign");
    script.end();
}

/// TRM-5: replica 2 returns without memory, and learns from which position the log is kept. By the
/// time it has reached that position with a snapshot, the log has advanced. It must learn the new
/// position; otherwise it would wait for entries that no replica has.
#[test]
fn replica_is_informed_each_time_it_lags() {
    const DELIVERED: usize = 40;
    const KEPT_FROM: usize = 56;
    let mut script = Script::new(&[None]);
    script.world.gives_snapshots = false;
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    let told = |world: &World| world.shown(P[0], LinkId(2), KEPT_FROM);
    let around = script.world.settings.log_entries + 2;
    let tail = script.world.log_control(P[0])[TAIL];
    script.go_on(&P[..2], 0, around);
    script.among(&P, &[], |world| told(world) > 0);
    script.does_come(&P, &[], 20, |_| false);
    let is_admitted = script.world.log_control(P[0])[TAIL] > tail + u64::from(around);
    assert!(!is_admitted, "it counts again once it has all that is kept");
    let first = told(&script.world);
    script.go_on(&P[..2], 0, around);
    assert_eq!(told(&script.world), first, "it has not come there yet");
    script.world.poke(P[0], LinkId(2), DELIVERED, first);
    script.among(&P[..2], &[], |world| told(world) > first);
    let tail = script.world.log_control(P[0])[TAIL];
    assert_eq!(told(&script.world), tail - u64::from(script.world.settings.log_entries));
    script.world.gives_snapshots = true;
    script.end();
}
