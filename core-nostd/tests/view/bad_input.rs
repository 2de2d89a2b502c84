//! Rows with values that no correct member publishes. They cause no panic, no endless loop and no
//! impossible delivery, and the row's owner is suspected if the fault is evident. None may block
//! the others forever.

use std::cell::Cell;

use tramontane_core::ids::{Frontier, NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, JOINS_MAX, Layout, Subgroup, ViewColumn};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Misbehaved;
use tramontane_core::view::{
    Accepted, Ballot, Cause, Change, Committed, Halt, Host, NextView, PeerState, RowTable, Stance,
    Status, Table, ViewChange, ViewOptions, ViewState,
};

use crate::arena::timeless;
use crate::chain::SplitMix;

mod columns;
mod decisions;
mod foreign;
mod silence;
mod victim;

use victim::{GROUP, Victim};

/// Lets member 0, the leader, publish a list. Returns the suspicions that result.
fn leader_shows(entries: &[u64], count: u16, trim: u64) -> Vec<(Rank, Cause)> {
    let mut victim = Victim::new();
    victim.step();
    for (index, cell) in (0..).zip(entries) {
        victim.put(0, ViewColumn::Entry(index), *cell);
    }
    victim.put(0, ViewColumn::Trim(SubgroupId(0)), trim);
    victim.put(0, ViewColumn::Suspicions(0), 0b100);
    victim.put_stance(0, 0, 1, count);
    for _ in 0..3 {
        victim.step();
    }
    victim.host.causes.iter().copied().filter(|(rank, _)| *rank == Rank(0)).collect()
}

#[test]
fn member_publishing_an_invalid_list_is_suspected() {
    let own = Ballot(1);
    let remove = |rank: u16| Change::Remove(Rank(rank)).encode(own);
    let seal = Change::Seal.encode(own);
    let misbehaved = [(Rank(0), Cause::Misbehaved)];
    // Valid lists come first, to show that the checks below mean something.
    assert_eq!(leader_shows(&[remove(2)], 1, 0), []);
    assert_eq!(leader_shows(&[remove(2), seal], 2, 6), []);
    for (name, entries, count, trim) in [
        ("a guard before its entry", vec![], 1, 0),
        ("a count beyond the list", vec![remove(2)], u16::MAX, 0),
        ("no such change", vec![1 << 48 | 9 << 32], 1, 0),
        ("no such rank", vec![remove(77)], 1, 0),
        ("a member removed that nobody suspects", vec![remove(1)], 1, 0),
        ("a member removed twice", vec![remove(2), remove(2)], 2, 0),
        ("a member that joins", vec![Change::Join(NodeId(2)).encode(own)], 1, 0),
        ("a joiner twice", vec![Change::Join(NodeId(9)).encode(own); 2], 2, 0),
        ("a stranger taken back", vec![Change::Withdraw(NodeId(9)).encode(own)], 1, 0),
        ("a member taken back", vec![Change::Withdraw(NodeId(2)).encode(own)], 1, 0),
        ("a change after the seal", vec![seal, remove(2)], 2, 6),
        ("a seal without trims", vec![remove(2), seal], 2, 0),
        ("a trim beyond what is here", vec![remove(2), seal], 2, 12),
        ("a trim that is no place", vec![remove(2), seal], 2, u64::MAX - 1),
        ("no survivor where one is", vec![remove(2), seal], 2, u64::MAX),
    ] {
        assert_eq!(leader_shows(&entries, count, trim), misbehaved, "{name}");
    }
    let many: Vec<u64> = (0..6).map(|node| Change::Join(NodeId(20 + node)).encode(own)).collect();
    assert_eq!(leader_shows(&many, 6, 0), misbehaved, "more members than there is memory for");
    // Each join is withdrawn at once.
    let turns = |count: u32| -> Vec<u64> {
        let in_and_out = |node| [Change::Join(NodeId(node)), Change::Withdraw(NodeId(node))];
        (20..20 + count).flat_map(in_and_out).map(|change| change.encode(own)).collect()
    };
    let most = JOINS_MAX as u32;
    assert_eq!(leader_shows(&turns(most), 2 * most as u16, 0), []);
    let more = leader_shows(&turns(most + 1), 2 * most as u16 + 2, 0);
    assert_eq!(more, misbehaved, "more joins than a change has");
}

#[test]
fn member_publishing_trim_below_deliveries_is_suspected() {
    let mut victim = Victim::new();
    victim.host.delivered = 7;
    victim.step();
    victim.put(0, ViewColumn::Entry(0), Change::Seal.encode(Ballot(1)));
    victim.put(0, ViewColumn::Trim(SubgroupId(0)), 7);
    victim.put_stance(0, 0, 1, 1);
    victim.step();
    assert_eq!(victim.host.causes, [(Rank(0), Cause::Misbehaved)]);
    assert_eq!(victim.host.delivered, 7);
}

#[test]
fn member_publishing_invalid_final_count_is_suspected() {
    let mut victim = Victim::new();
    victim.put(0, ViewColumn::Suspicions(0), 0);
    // Member 0 is lost, so member 1 leads; member 2 follows and publishes an invalid count.
    let mut change =
        ViewChange::new(&victim.layout, &mut victim.state, &mut victim.peers, &mut victim.next)
            .unwrap();
    change.peer_lost(Rank(0));
    victim.put_stance(2, 1, 0, 0);
    victim.step();
    assert_eq!(
        Stance::decode(victim.own(ViewColumn::Stance)).accepted,
        Accepted { ballot: Ballot(2), count: 1 }
    );
    victim.put(2, ViewColumn::Wedged(SubgroupId(0)), u64::MAX);
    victim.put_stance(2, 1, 2, 1);
    victim.step();
    assert!(victim.host.causes.contains(&(Rank(2), Cause::Misbehaved)));
    assert_eq!(victim.step(), Status::Halted(Halt::NoMajority));
}

/// Only this member still accepts the list after both others drop out in one step: one is reported
/// lost, and the leader shows an impossible value. One member of three decides nothing.
#[test]
fn sole_remaining_member_decides_nothing() {
    let mut victim = Victim::new();
    victim.put(0, ViewColumn::Entry(0), Change::Join(NodeId(9)).encode(Ballot(1)));
    victim.put(0, ViewColumn::Entry(1), Change::Seal.encode(Ballot(1)));
    victim.put(0, ViewColumn::Trim(SubgroupId(0)), 6);
    victim.put_stance(0, 0, 1, 2);
    victim.step();
    assert_eq!(victim.stance().accepted, Accepted { ballot: Ballot(1), count: 2 });
    victim.put_stance(0, 2, 1, 2);
    let mut change =
        ViewChange::new(&victim.layout, &mut victim.state, &mut victim.peers, &mut victim.next)
            .unwrap();
    change.peer_lost(Rank(2));
    assert_ne!(victim.step(), Status::Decided);
    assert!(victim.host.causes.contains(&(Rank(0), Cause::Misbehaved)));
    assert_eq!(victim.step(), Status::Halted(Halt::NoMajority));
}

/// A member requests the join of a node that is in the view. That node must first leave the view.
#[test]
fn join_request_for_a_member_has_no_effect() {
    for (node, count) in [(9, 2), (3, 1), (1, 1)] {
        let mut victim = leading();
        // The first request: its sequence number, and the node.
        victim.put(2, ViewColumn::JoinRequest, 1 << 33 | node);
        victim.put_stance(2, 1, 2, 1);
        victim.step();
        assert_eq!(victim.stance().accepted.count, count, "node {node}");
    }
}

/// Returns member 1 as the leader, because member 0 is lost. Member 1 has proposed the removal, and
/// member 2 has promised and accepted it.
fn leading() -> Victim {
    let mut victim = Victim::new();
    let mut change =
        ViewChange::new(&victim.layout, &mut victim.state, &mut victim.peers, &mut victim.next)
            .unwrap();
    change.peer_lost(Rank(0));
    victim.put(2, ViewColumn::Suspicions(0), 0b001);
    victim.put_stance(2, 1, 0, 0);
    victim.step();
    assert_eq!(victim.stance().accepted, Accepted { ballot: Ballot(2), count: 1 });
    victim
}

/// Returns the leader's suspicions of a follower that publishes this stance and final count.
fn follower_shows(promise: u16, ballot: u16, count: u16, wedged: u64) -> Vec<(Rank, Cause)> {
    let mut victim = leading();
    victim.put(2, ViewColumn::Wedged(SubgroupId(0)), wedged);
    victim.put_stance(2, promise, ballot, count);
    for _ in 0..3 {
        victim.step();
    }
    victim.host.causes.iter().copied().filter(|(rank, _)| *rank == Rank(2)).collect()
}

#[test]
fn follower_publishing_an_impossible_state_is_suspected() {
    let misbehaved = [(Rank(2), Cause::Misbehaved)];
    // Valid stances come first: not accepted yet, and accepted.
    assert_eq!(follower_shows(1, 0, 0, 0), []);
    assert_eq!(follower_shows(1, 2, 1, 6), []);
    for (name, promise, ballot, count, wedged) in [
        ("a promise to a later leader without a suspicion of this one", 2, 0, 0, 0),
        ("a promise to nobody", 7, 0, 0, 0),
        ("a later leader's list without a suspicion of this one", 1, 3, 1, 6),
        ("the list of a member that there is not", 1, 9, 1, 6),
        ("more of the list than there is", 1, 2, 2, 6),
        ("a list without a final count", 1, 2, 1, 0),
        ("a final count that is none", 1, 2, 1, u64::MAX),
    ] {
        assert_eq!(follower_shows(promise, ballot, count, wedged), misbehaved, "{name}");
    }
}

#[test]
fn follower_with_too_low_final_count_is_suspected() {
    let mut victim = leading();
    victim.host.delivered = 7;
    victim.put(2, ViewColumn::Wedged(SubgroupId(0)), 1 + 6);
    victim.put_stance(2, 1, 2, 1);
    victim.step();
    assert!(
        victim.host.causes.contains(&(Rank(2), Cause::Misbehaved)),
        "and not the leader, by all others"
    );
}

#[test]
fn leader_publishing_an_impossible_state_is_suspected() {
    for (name, promise, ballot, count) in [
        ("a promise to a later leader", 1, 0, 0),
        ("a later leader's list", 0, 2, 1),
        ("no member's list", 0, 9, 1),
    ] {
        let mut victim = Victim::new();
        victim.step();
        victim.put_stance(0, promise, ballot, count);
        victim.step();
        assert_eq!(victim.host.causes, [(Rank(0), Cause::Misbehaved)], "{name}");
    }
}

/// The cell is zero or one.
#[test]
fn member_publishing_invalid_leave_request_is_suspected() {
    for (shown, causes) in [
        (0, vec![]),
        (1, vec![]),
        (2, vec![(Rank(2), Cause::Misbehaved)]),
        (1 << 40, vec![(Rank(2), Cause::Misbehaved)]),
    ] {
        let mut victim = leading();
        victim.host.causes.clear();
        victim.put(2, ViewColumn::Leaving, shown);
        victim.step();
        assert_eq!(victim.host.causes, causes, "{shown}");
    }
}

/// Otherwise the member's silence would never be detected.
#[test]
fn falsely_claiming_installation_does_not_hide_silence() {
    let mut victim = Victim::new();
    let options = ViewOptions {
        heartbeat_interval_ns: 1,
        failure_timeout_ns: 10,
        first_timeout_ns: 10,
        members_max: 8,
        ..timeless()
    };
    victim.state = ViewState::new(ViewId(1), Rank(1), options);
    victim.put(2, ViewColumn::Installed, u64::MAX);
    for now in 1..40 {
        victim.put(0, ViewColumn::Heartbeat, now);
        victim.step_at(now);
    }
    assert_eq!(victim.host.causes, [(Rank(2), Cause::Silent)]);
}

/// The list is valid when it is checked, and different when it is copied.
#[test]
fn list_that_changes_during_acceptance_is_not_accepted() {
    let own = Ballot(1);
    let seal = Change::Seal.encode(own);
    let mut halted = 0;
    for (column, value) in [
        (ViewColumn::Entry(0), Change::Remove(Rank(1)).encode(own)),
        (ViewColumn::Entry(0), Change::Remove(Rank(2)).encode(Ballot(3))),
        (ViewColumn::Entry(0), 1 << 48 | 9 << 32),
        (ViewColumn::Entry(1), Change::Join(NodeId(9)).encode(own)),
        (ViewColumn::Trim(SubgroupId(0)), 0),
        (ViewColumn::Trim(SubgroupId(0)), 1 + 11),
        (ViewColumn::Trim(SubgroupId(0)), u64::MAX),
    ] {
        for look in 1..80 {
            let mut victim = Victim::new();
            victim.step();
            victim.put(0, ViewColumn::Suspicions(0), 0b100);
            victim.put(0, ViewColumn::Entry(0), Change::Remove(Rank(2)).encode(own));
            victim.put(0, ViewColumn::Entry(1), seal);
            victim.put(0, ViewColumn::Trim(SubgroupId(0)), 6);
            victim.put_stance(0, 0, 1, 2);
            victim.changes_at = Some((look, 0, column, value));
            let mut status = victim.step();
            for _ in 0..3 {
                status = victim.step();
            }
            let accepted = victim.stance().accepted;
            if accepted != Accepted::default() {
                // The accepted list is the one that was checked: either the original one, or one
                // with another valid end.
                let entries = [0, 1].map(|index| victim.own(ViewColumn::Entry(index)));
                let joins = entries[1] == Change::Join(NodeId(9)).encode(own);
                let other_end = column == ViewColumn::Entry(1) && joins;
                assert!(entries[1] == seal || other_end, "{column:?} {value:x} {look}");
                assert_eq!(
                    entries[0],
                    Change::Remove(Rank(2)).encode(own),
                    "{column:?} {value:x} {look}"
                );
                assert!(
                    other_end || victim.own(ViewColumn::Trim(SubgroupId(0))) == 6,
                    "{column:?} {value:x} {look}"
                );
            } else {
                assert!(
                    victim.host.causes.contains(&(Rank(0), Cause::Misbehaved)) || status.is_final()
                );
                halted += u32::from(status == Status::Halted(Halt::ChangedBy(Rank(0))));
            }
        }
    }
    assert!(halted > 0, "a list that changes between check and copy");
}

#[test]
fn member_that_suspects_nonexistent_members_is_suspected() {
    let mut victim = Victim::new();
    victim.step();
    victim.put(2, ViewColumn::Suspicions(0), 1 << 40);
    victim.step();
    assert_eq!(victim.host.causes, [(Rank(2), Cause::Misbehaved)]);
}

#[test]
fn sealed_list_is_never_replaced() {
    for last in [Change::Seal, Change::Join(NodeId(10))] {
        sealed_and_then(last);
    }
}

/// Checks a leader that has sealed a list and then shows a longer one, which ends with `last`.
fn sealed_and_then(last: Change) {
    let own = Ballot(1);
    let mut victim = Victim::new();
    victim.step();
    // Member 2 has not accepted the list, so nothing is decided.
    victim.is_shown_a_sealed_list();
    victim.step();
    assert_eq!(victim.stance().accepted, Accepted { ballot: own, count: 2 });
    victim.put(0, ViewColumn::Entry(1), Change::Join(NodeId(9)).encode(own));
    victim.put(0, ViewColumn::Entry(2), last.encode(own));
    victim.put_stance(0, 0, 1, 3);
    victim.step();
    assert_eq!(victim.stance().accepted, Accepted { ballot: own, count: 2 });
    assert!(victim.host.causes.contains(&(Rank(0), Cause::Misbehaved)), "{last:?}");
}

/// A leader's own entries bear its ballot as soon as its stance refers to them.
#[test]
fn leader_that_changes_its_proposal_is_suspected() {
    let mut victim = Victim::new();
    victim.step();
    victim.put(0, ViewColumn::Suspicions(0), 0b100);
    victim.put(0, ViewColumn::Entry(0), Change::Remove(Rank(2)).encode(Ballot(2)));
    victim.put_stance(0, 0, 1, 1);
    victim.step();
    assert_eq!(victim.stance().accepted, Accepted::default());
    assert!(victim.host.causes.contains(&(Rank(0), Cause::Misbehaved)));
}

/// The list's owner already follows a later leader, and its row says so before anything else about
/// that leader: the owner is not accused.
#[test]
fn member_ignores_list_meant_for_later_leader() {
    let (mut gone_on, mut accused) = (0, 0);
    for look in 1..60 {
        let mut victim = Victim::new();
        let mut change =
            ViewChange::new(&victim.layout, &mut victim.state, &mut victim.peers, &mut victim.next)
                .unwrap();
        change.peer_lost(Rank(0));
        victim.put(2, ViewColumn::Suspicions(0), 0b001);
        victim.put_stance(2, 1, 1, 1);
        victim.put(2, ViewColumn::Entry(0), Change::Remove(Rank(1)).encode(Ballot(3)));
        victim.changes_at = Some((look, 2, ViewColumn::Suspicions(0), 0b011));
        victim.step();
        assert_eq!(victim.stance().accepted, Accepted::default(), "before look {look}");
        victim.step();
        // With the owner's suspicions, no majority remains here.
        gone_on += u32::from(victim.host.causes.contains(&(Rank(2), Cause::Halted)));
        accused += u32::from(victim.host.causes.contains(&(Rank(2), Cause::Misbehaved)));
    }
    assert!(gone_on > 5 && accused > 0 && gone_on + accused == 59, "{gone_on} {accused}");
}

#[test]
fn random_cells_cause_no_panic_or_impossible_delivery() {
    let mut statuses = [0_u32; 4];
    for seed in 0..20_000 {
        let mut random = SplitMix::new(seed);
        let mut victim = Victim::new();
        if random.chance(30) {
            // Some of the random cells are added to a valid change.
            victim.put(0, ViewColumn::Suspicions(0), 0b100);
            victim.put(0, ViewColumn::Entry(0), Change::Remove(Rank(2)).encode(Ballot(1)));
            victim.put(0, ViewColumn::Entry(1), Change::Seal.encode(Ballot(1)));
            victim.put(0, ViewColumn::Trim(SubgroupId(0)), 1 + random.below(11));
            victim.put_stance(0, 0, 1, 1 + random.below(2) as u16);
        }
        for _ in 0..8 {
            for _ in 0..random.below(12) {
                let owner = if random.chance(50) { 0 } else { 2 };
                let index = random.below(4) as u16;
                let column = match random.below(9) {
                    0 => ViewColumn::Heartbeat,
                    1 => ViewColumn::Leaving,
                    2 => ViewColumn::JoinRequest,
                    3 => ViewColumn::Committed,
                    4 => ViewColumn::Installed,
                    5 => ViewColumn::Suspicions(0),
                    6 => ViewColumn::Entry(index),
                    7 => ViewColumn::Wedged(SubgroupId(0)),
                    _ => ViewColumn::Trim(SubgroupId(0)),
                };
                let ballot = Ballot(1 + random.below(3) as u16);
                let value = match random.below(7) {
                    0 => random.below(u64::MAX),
                    1 => u64::MAX,
                    2 => Change::Seal.encode(ballot),
                    3 => Change::Remove(Rank(random.below(4) as u16)).encode(ballot),
                    4 => Change::Join(NodeId(random.below(12) as u32)).encode(ballot),
                    _ => random.below(12),
                };
                victim.put(owner, column, value);
                if random.chance(60) {
                    victim.put_stance(
                        owner,
                        random.below(3) as u16,
                        random.below(4) as u16,
                        random.below(5) as u16,
                    );
                }
            }
            let status = victim.step();
            let kind = match status {
                Status::Steady => 0,
                Status::Wedged => 1,
                Status::Decided | Status::Installed | Status::Left => 2,
                Status::Halted(_) => 3,
            };
            statuses[kind] += 1;
        }
    }
    println!("steady, wedged, past the decision, halted: {statuses:?}");
    assert!(statuses.iter().all(|count| *count > 100), "{statuses:?}");
}

#[test]
fn mismatched_state_size_is_refused() {
    let layout = Layout::with_views(GROUP).expect("a good group");
    let fixed = Layout::new(GROUP).expect("a good group");
    let fits = |layout: &Layout<'_>, rank: u16, peers: usize, next: usize| {
        let mut state = ViewState::new(ViewId(1), Rank(rank), timeless());
        let (mut peers, mut next) = (vec![PeerState::default(); peers], vec![NodeId(0); next]);
        ViewChange::new(layout, &mut state, &mut peers, &mut next).is_some()
    };
    assert!(fits(&layout, 2, 3, 3));
    assert!(!fits(&layout, 3, 3, 3));
    assert!(!fits(&layout, 2, 2, 3));
    assert!(!fits(&layout, 2, 3, 2));
    assert!(!fits(&fixed, 2, 3, 3), "a fixed membership has no columns for views");
}
