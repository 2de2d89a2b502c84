//! Joins, leaves, crashes and majorities.

use super::*;

use tramontane_core::layout::JOINS_MAX;

#[test]
fn joiner_dying_during_state_transfer_is_not_admitted() {
    let mut arena = group(3);
    settle(&mut arena, &[0, 1, 2]);
    arena.wish(2, NodeId(9));
    arena.pull_all(0);
    // The join is proposed; before any member accepts it, the joiner dies.
    step(&mut arena, 0, 0, None);
    assert_eq!(arena.accepted(0).accepted.count, 1);
    arena.take_back(2);
    settle(&mut arena, &[0, 1, 2]);
    assert_eq!(arena.decision.expect("decided").members, nodes(&[1, 2, 3]));
}

#[test]
fn joiner_that_crashes_after_admission_is_removed() {
    let options = ViewOptions {
        heartbeat_interval_ns: 1,
        failure_timeout_ns: 10,
        first_timeout_ns: 50,
        ..ViewOptions::default()
    };
    let mut arena = group_with(3, options);
    // Rank 2 is the joiner: it is in the view, but has never run.
    arena.members[2].alive = false;
    for now in 1..200 {
        for rank in [0, 1] {
            if arena.is_active(rank) {
                arena.pull_all(rank);
                step(&mut arena, rank, now, None);
            }
        }
    }
    assert_eq!(arena.decision.expect("decided").members, nodes(&[1, 2]));
}

#[test]
fn two_simultaneous_joins_share_one_change() {
    let mut arena = group(3);
    settle(&mut arena, &[0, 1, 2]);
    arena.wish(1, NodeId(8));
    arena.wish(2, NodeId(7));
    settle(&mut arena, &[0, 1, 2]);
    assert_eq!(arena.decision.as_ref().expect("decided").members, nodes(&[1, 2, 3, 8, 7]));
    assert_eq!(arena.next_view(0), Some(nodes(&[1, 2, 3, 8, 7])));
}

#[test]
fn joins_beyond_the_capacity_wait() {
    let mut arena = group_with(4, ViewOptions { members_max: 6, ..timeless() });
    settle(&mut arena, &[0, 1, 2, 3]);
    for rank in 0..4 {
        arena.wish(rank, NodeId(20 + rank as u32));
    }
    settle(&mut arena, &[0, 1, 2, 3]);
    assert_eq!(arena.decision.expect("decided").members, nodes(&[1, 2, 3, 4, 20, 21]));
}

#[test]
fn node_requested_by_two_members_joins_once() {
    let mut arena = group(3);
    arena.wish(0, NodeId(9));
    arena.wish(1, NodeId(9));
    settle(&mut arena, &[0, 1, 2]);
    assert_eq!(arena.decision.expect("decided").members, nodes(&[1, 2, 3, 9]));
}

#[test]
fn withdrawn_join_request_does_not_cancel_anothers() {
    for (first, second) in [(1, 2), (2, 1)] {
        let mut arena = group(3);
        settle(&mut arena, &[0, 1, 2]);
        arena.wish(first, NodeId(9));
        arena.pull_all(0);
        step(&mut arena, 0, 0, None);
        assert_eq!(arena.accepted(0).accepted.count, 1, "the join is proposed");
        // The node restarted its join with another member.
        arena.wish(second, NodeId(9));
        arena.take_back(first);
        settle(&mut arena, &[0, 1, 2]);
        assert_eq!(arena.decision.expect("decided").members, nodes(&[1, 2, 3, 9]));
    }
}

#[test]
fn withdrawn_join_leaves_later_joins_in_place() {
    let mut arena = group(3);
    settle(&mut arena, &[0, 1, 2]);
    for (rank, node) in [(1, 9), (2, 8)] {
        arena.wish(rank, NodeId(node));
        arena.pull_all(0);
        step(&mut arena, 0, 0, None);
    }
    assert_eq!(arena.accepted(0).accepted.count, 2, "both joins are proposed");
    arena.take_back(1);
    settle(&mut arena, &[0, 1, 2]);
    assert_eq!(arena.decision.expect("decided").members, nodes(&[1, 2, 3, 8]));
}

#[test]
fn evenly_split_group_halts_on_both_sides() {
    let mut arena = group(4);
    settle(&mut arena, &[0, 1, 2, 3]);
    for (here, there) in [([0, 1], [2, 3]), ([2, 3], [0, 1])] {
        for lost in there {
            tell(&mut arena, &here, lost);
        }
    }
    for half in [[0, 1], [2, 3]] {
        settle(&mut arena, &half);
        assert!(half.iter().all(|rank| arena.status(*rank) == Status::Halted(Halt::NoMajority)));
    }
    assert_eq!(arena.decision, None);
}

#[test]
fn majority_continues_and_minority_halts() {
    let mut arena = group(5);
    settle(&mut arena, &[0, 1, 2, 3, 4]);
    for lost in [2, 3, 4] {
        tell(&mut arena, &[0, 1], lost);
    }
    for lost in [0, 1] {
        tell(&mut arena, &[2, 3, 4], lost);
    }
    settle(&mut arena, &[2, 3, 4]);
    settle(&mut arena, &[0, 1]);
    assert_eq!(arena.decision.as_ref().expect("decided").members, nodes(&[3, 4, 5]));
    assert!([0, 1].iter().all(|rank| arena.status(*rank) == Status::Halted(Halt::NoMajority)));
}

#[test]
fn pair_shrinks_after_leave_but_not_after_crash() {
    for leaver in [0, 1] {
        let stays = 1 - leaver;
        let mut arena = group(2);
        settle(&mut arena, &[0, 1]);
        arena.leave(leaver);
        settle(&mut arena, &[0, 1]);
        assert_eq!(arena.status(leaver), Status::Left);
        assert_eq!(arena.status(stays), Status::Installed);
        assert_eq!(arena.next_view(stays), Some(nodes(&[stays as u32 + 1])));

        let mut arena = group(2);
        settle(&mut arena, &[0, 1]);
        arena.crash_now(leaver);
        arena.lose(stays, leaver);
        settle(&mut arena, &[stays]);
        assert_eq!(arena.status(stays), Status::Halted(Halt::NoMajority));
    }
}

#[test]
fn leaver_learns_decision_although_its_maker_is_lost() {
    for leaver in [0, 1] {
        let stays = 1 - leaver;
        let mut arena = group(2);
        settle(&mut arena, &[0, 1]);
        arena.leave(leaver);
        while arena.status(stays) != Status::Installed {
            // The leaver sees everything except the other's last step.
            arena.pull(leaver, stays, usize::MAX);
            assert_ne!(step(&mut arena, leaver, 0, None), Status::Left);
            arena.pull(stays, leaver, usize::MAX);
            step(&mut arena, stays, 0, None);
        }
        // The member that stays exits at once: its last writes and its loss arrive together.
        arena.pull(leaver, stays, usize::MAX);
        arena.lose(leaver, stays);
        assert_eq!(step(&mut arena, leaver, 0, None), Status::Left, "{leaver} leaves");
    }
}

/// DUR-12: a group that logs is restarted by the members of its last view.
#[test]
fn all_members_may_leave_at_once() {
    for (crashed, joins, last) in
        [(None, false, vec![1, 2, 3]), (None, true, vec![1, 2, 3]), (Some(0), true, vec![2, 3])]
    {
        let mut arena = group(3);
        settle(&mut arena, &[0, 1, 2]);
        let live: Vec<usize> = (0..3).filter(|rank| Some(*rank) != crashed).collect();
        if joins {
            arena.wish(1, NodeId(9));
        }
        live.iter().for_each(|rank| arena.leave(*rank));
        if let Some(crashed) = crashed {
            arena.crash_now(crashed);
            tell(&mut arena, &live, crashed);
        }
        settle(&mut arena, &live);
        assert!(live.iter().all(|rank| arena.status(*rank) == Status::Left));
        assert_eq!(arena.decision.expect("decided").members, nodes(&last));
    }
}

/// Without the others, a leaver would have no majority, and would end as if it had failed.
#[test]
fn last_leavers_wait_for_each_other() {
    let mut arena = group(3);
    settle(&mut arena, &[0, 1, 2]);
    (0..3).for_each(|rank| arena.leave(rank));
    // The last member steps only when the others can do nothing without it.
    while arena.status(2) != Status::Decided {
        [0, 1].iter().for_each(|rank| arena.pull(*rank, 2, usize::MAX));
        settle(&mut arena, &[0, 1]);
        arena.pull_all(2);
        step(&mut arena, 2, 0, None);
    }
    // The first member learns that the list has been decided, and that member 2 knows this. It does
    // not know whether member 1 does.
    arena.pull(0, 2, usize::MAX);
    assert_eq!(step(&mut arena, 0, 0, None), Status::Decided);
    settle(&mut arena, &[0, 1, 2]);
    assert!((0..3).all(|rank| arena.status(rank) == Status::Left));
}

#[test]
fn crash_leave_and_join_share_one_change() {
    let mut arena = group(5);
    settle(&mut arena, &[0, 1, 2, 3, 4]);
    arena.crash_now(1);
    arena.leave(3);
    arena.wish(4, NodeId(9));
    tell(&mut arena, &[0, 2, 3, 4], 1);
    for rank in [0, 2, 3, 4] {
        arena.pull_all(rank);
    }
    settle(&mut arena, &[0, 2, 3, 4]);
    assert_eq!(arena.decision.expect("decided").members, nodes(&[1, 3, 5, 9]));
}

#[test]
fn failure_during_a_change_is_included_in_it() {
    let mut arena = group(5);
    settle(&mut arena, &[0, 1, 2, 3, 4]);
    arena.crash_now(4);
    tell(&mut arena, &[0, 1, 2, 3], 4);
    step(&mut arena, 0, 0, None);
    arena.pull(1, 0, usize::MAX);
    step(&mut arena, 1, 0, None);
    arena.crash_now(3);
    tell(&mut arena, &[0, 1, 2], 3);
    settle(&mut arena, &[0, 1, 2]);
    assert_eq!(arena.decision.expect("decided").members, nodes(&[1, 2, 3]));
}

/// VIE-3: if a denied member suspected the members that cut it off, it would take down the first
/// member that reads its suspicions.
#[test]
fn denied_member_halts_without_suspecting_others() {
    let mut arena = group(3);
    settle(&mut arena, &[0, 1, 2]);
    arena.deny(1, 0);
    assert_eq!(step(&mut arena, 1, 0, None), Status::Halted(Halt::SuspectedBy(Rank(0))));
    assert_eq!(arena.suspected(1), (vec![], Status::Halted(Halt::SuspectedBy(Rank(0)))));
    // The others notice, and continue.
    tell(&mut arena, &[0, 2], 1);
    settle(&mut arena, &[0, 2]);
    assert_eq!(arena.decision.as_ref().expect("decided").members, nodes(&[1, 3]));
    assert_eq!(arena.suspected(0), (vec![1], Status::Installed));
}

/// The host may report such a member by mistake, or because an event is late.
#[test]
fn report_about_a_nonexistent_member_changes_nothing() {
    let mut arena = group(3);
    settle(&mut arena, &[0, 1, 2]);
    let before = arena.fingerprint();
    arena.lose(1, 3);
    arena.deny(1, 3);
    settle(&mut arena, &[0, 1, 2]);
    assert_eq!(arena.fingerprint(), before);
    assert_eq!(arena.suspected(1), (vec![], Status::Steady));
}

/// VIE-9: if no majority is required, each half of a group continues.
#[test]
fn each_half_continues_if_no_majority_is_required() {
    let options = ViewOptions { majority: false, ..timeless() };
    for (part, members) in [([0], nodes(&[1])), ([1], nodes(&[2]))] {
        let mut arena = group_with(2, options);
        settle(&mut arena, &[0, 1]);
        tell(&mut arena, &part, 1 - part[0]);
        // The oracle requires the majority that these options waive.
        for _ in 0..10 {
            arena.step(part[0], Time(0), |_| None);
        }
        assert_eq!(arena.status(part[0]), Status::Installed);
        assert_eq!(arena.next_view(part[0]), Some(members));
    }
}

/// VIE-3: suspicions of more than 64 members take several cells.
#[test]
fn large_group_drops_a_failed_member() {
    let everyone: Vec<usize> = (0..67).collect();
    for lost in [3, 66] {
        let mut arena = group(67);
        let rest: Vec<usize> = everyone.iter().copied().filter(|rank| *rank != lost).collect();
        settle(&mut arena, &everyone);
        arena.crash_now(lost);
        // One member receives the report from its fabric, and the others learn of the loss from
        // that member.
        tell(&mut arena, &[5], lost);
        settle(&mut arena, &rest);
        let next = arena.decision.as_ref().expect("decided").members.len();
        assert_eq!(next, 66);
        assert!(rest.iter().all(|rank| arena.status(*rank) == Status::Installed));
        assert!(rest.iter().all(|rank| arena.suspected(*rank).0 == [lost]));
    }
}

/// VIE-10: one change admits a limited number of joins; the others wait for the next change.
#[test]
fn joins_beyond_the_limit_wait_for_next_change() {
    let most = JOINS_MAX;
    let mut arena = group((most + 2) as u16);
    let everyone: Vec<usize> = (0..most + 2).collect();
    settle(&mut arena, &everyone);
    for rank in &everyone {
        arena.wish(*rank, NodeId(100 + *rank as u32));
    }
    settle(&mut arena, &everyone);
    let decided = arena.decision.as_ref().expect("decided").members.len();
    assert_eq!(decided, most + 2 + most);
}
