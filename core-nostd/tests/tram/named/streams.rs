//! Histories of the writes from a leader to its followers' logs, list by list.

use tramontane_core::ids::{ClientNumber, Rank};
use tramontane_core::tram::{LinkId, ReplicaId};

use super::script::{DECIDED, P, STAMP, Script, TAIL, here};
use crate::world::World;

/// Offset of the cell in a leader's row that holds the stamp for the peer's log.
const STAGED: usize = 64;
/// Offset of the cell that says from which position the leader has the entries that the peer's log
/// lacks.
const KEPT_FROM: usize = 56;

/// TRM-3: all entries that a follower lacks are posted in one step, in as many lists as needed.
#[test]
fn step_posts_all_lists_that_a_follower_lacks() {
    let mut script = Script::new(&[None]);
    script.does_come(&P, &[0, 1], 400, |_| false);
    let before = script.world.log_control(P[2])[TAIL];
    let messages = script.world.settings.window;
    for _ in 0..messages {
        script.multicast(0, here());
    }
    script.world.allow_only(&P, &[ClientNumber(0)]);
    for _ in 0..4 {
        script.world.step_client(ClientNumber(0));
        while script.world.network.borrow_mut().deliver_if_any_can() {}
    }
    script.moves(&P[..1], &P, 1);
    let tails = P.map(|id| script.world.log_control(id)[TAIL] - before);
    assert_eq!(tails, [u64::from(messages); 3]);
    script.end();
}

/// TRM-3: an entry whose header fits in a list goes with the next list if its payload does not fit.
#[test]
fn entry_that_does_not_fit_uses_next_list() {
    let mut script = Script::in_short_lists(&[None]);
    script.does_come(&P, &[0, 1], 400, |_| false);
    let before = script.world.log_control(P[2])[TAIL];
    let mut long = || script.world.multicast(ClientNumber(0), here(), 190).expect("there is room");
    let [.., last] = [long(), long(), long()];
    script.world.allow_only(&P, &[ClientNumber(0)]);
    for _ in 0..4 {
        script.world.step_client(ClientNumber(0));
        while script.world.network.borrow_mut().deliver_if_any_can() {}
    }
    script.moves(&P[..1], &P, 1);
    let tails = P.map(|id| script.world.log_control(id)[TAIL] - before);
    assert_eq!(tails, [3; 3]);
    script.delivers(P[2], last, &P, &[0]);
    script.end();
}

/// TRM-3: a log counts once the list with its stamp has landed. Later lists are constantly in
/// flight, and the leader need not wait for them.
#[test]
fn log_counts_once_its_stamp_has_landed() {
    let mut script = Script::new(&[None]);
    let before = script.world.log_control(P[1]);
    // Replica 1 has a message that is not decided.
    script.multicast(0, here());
    script.among(&P[..2], &[0], |world| world.log_control(P[1])[TAIL] > before[TAIL]);
    script.leads(P[1], &P[1..]);
    let promised = script.world.replicas[&P[1]].replica.promised().cell();
    let is_stamping = |world: &World| world.shown(P[1], LinkId(2), STAGED) == promised;
    script.among(&P[1..], &[], is_stamping);
    let tail = script.world.log_control(P[1])[TAIL];
    script.multicast(1, here());
    script.among(&P[1..2], &[1], |world| world.log_control(P[1])[TAIL] > tail);
    assert_eq!(script.world.log_control(P[1])[DECIDED], before[DECIDED]);
    script.world.allow_only(&P[1..], &[]);
    while script.world.log_control(P[2])[TAIL] <= tail {
        script.world.step_replica(P[1]);
        if script.world.log_control(P[1])[DECIDED] > before[DECIDED] {
            break;
        }
        assert!(script.world.network.borrow_mut().deliver_if_any_can());
    }
    assert_eq!(script.world.log_control(P[2])[..DECIDED], [promised, tail]);
    assert_eq!(script.world.log_control(P[1])[DECIDED], tail);
    script.end();
}

/// TRM-4: replica 1 was away, and becomes leader with replica 2, which has a snapshot and an empty
/// log. Replica 1 has not yet delivered the entries that replica 2 lacks. In the step that delivers
/// them it takes new messages, whose entries replace the first of those. These are no longer
/// needed, so replica 1 sends only the others to replica 2.
#[test]
fn list_omits_unneeded_log_entries() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let others = [P[0], P[2], three, four];
    let from = script.world.replicas[&P[1]].replica.delivered();
    let entries = u64::from(script.world.settings.log_entries);
    let end = from + entries - 2;
    let already = script.world.log_control(P[0])[TAIL] - from;
    let last = script.go_on(&others, 0, (end - from - already) as u32);
    assert_eq!(script.world.log_control(P[0])[TAIL], end);
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    while !script.world.has_delivered(P[2], last) {
        script.world.crash_replica(P[2]);
        script.world.start_replica(P[2], false);
    }
    let window = script.world.settings.window;
    let messages = (0..window).map(|_| script.multicast(1, here())).last();
    script.world.allow_only(&P[1..2], &[ClientNumber(1)]);
    for _ in 0..4 {
        script.world.step_client(ClientNumber(1));
        while script.world.network.borrow_mut().deliver_if_any_can() {}
    }
    let others = [P[1], P[2], three, four];
    script.among(&others, &[], |world| world.log_control(P[1])[TAIL] == end + u64::from(window));
    assert_eq!(script.world.replicas[&P[1]].replica.delivered(), end);
    let stamp = script.world.log_control(P[1])[STAMP];
    script.among(&others, &[], |world| world.log_control(P[2])[STAMP] == stamp);
    script.delivers(P[2], messages.expect("a window"), &others, &[]);
    script.end();
}

/// TRM-5: a leader that does not yet know that it was deposed is granted the log of a returning
/// replica that has delivered more than this leader has. It writes nothing there, and does not ask
/// it to restore a snapshot.
#[test]
fn deposed_leader_does_not_write_to_longer_logs() {
    let mut script = Script::new(&[None]);
    script.leads(P[1], &P[1..]);
    let last = script.go_on(&P[1..], 1, 3);
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    while !script.world.has_delivered(P[2], last) {
        script.world.crash_replica(P[2]);
        script.world.start_replica(P[2], false);
    }
    let before = script.world.log_control(P[0])[TAIL];
    assert!(script.world.replicas[&P[2]].replica.delivered() > before);
    let stale = script.world.replicas[&P[0]].replica.promised();
    script.among(&[P[0], P[2]], &[], |world| world.replicas[&P[2]].replica.promised() == stale);
    script.does_come(&[P[0], P[2]], &[], 40, |_| false);
    let promised = [P[0], P[2]].map(|id| script.world.replicas[&id].replica.promised());
    assert_eq!(promised, [stale; 2], "it leads still, as far as both know");
    assert_eq!(script.world.log_control(P[2])[TAIL], 0);
    assert!(script.world.shown(P[0], LinkId(2), KEPT_FROM) <= before);
    assert!(!script.world.replicas[&P[2]].replica.needs_snapshot());
    script.end();
}
