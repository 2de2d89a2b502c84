//! Rows that change between two reads of one step, as they do in shared memory. Each case runs once
//! for each read of the step: just before that read, everything that the others have published in
//! the meantime arrives.

use tramontane_core::ids::{NodeId, Rank, Time};
use tramontane_core::view::{Cause, Halt, Status};

use crate::arena::{Arena, setting, timeless};
use crate::oracle::{check, is_sealed};

/// More reads than any step of a small group performs.
const LOOKS_MAX: u64 = 400;

fn group(members: u16) -> Arena {
    let nodes: Vec<NodeId> = (1..=u32::from(members)).map(NodeId).collect();
    let everyone = (0..members).map(Rank).collect();
    Arena::new(Box::leak(setting(1, &nodes, &[everyone], timeless()).into()))
}

fn judged(arena: &mut Arena, rank: usize, case: &str) {
    check(arena, rank).unwrap_or_else(|wrong| panic!("{case}: {wrong}"));
}

/// Lets these members see everything of each other, and steps them until all are finished or
/// nothing changes.
fn settle(arena: &mut Arena, ranks: &[usize], case: &str) {
    for _ in 0..40 {
        for rank in ranks.iter().copied() {
            if arena.is_active(rank) {
                ranks
                    .iter()
                    .filter(|writer| **writer != rank)
                    .for_each(|writer| arena.pull(rank, *writer, usize::MAX));
                arena.step(rank, Time(0), |_| None);
                judged(arena, rank, case);
            }
        }
    }
}

/// Takes one step, during which all available writes arrive just before read number `look`.
fn step_with_news_before(arena: &mut Arena, rank: usize, look: u64, case: &str) -> Status {
    let status =
        arena.step_live(rank, Time(0), |_| None, |at, _| if at == look { usize::MAX } else { 0 });
    judged(arena, rank, case);
    status
}

/// Leads a change up to the seal, which no other member has seen yet.
fn sealed_by_the_leader(mut arena: Arena) -> Arena {
    let others: Vec<usize> = (1..arena.members.len()).collect();
    for _ in 0..20 {
        for rank in &others {
            arena.pull(0, *rank, usize::MAX);
        }
        arena.step(0, Time(0), |_| None);
        let count = arena.accepted(0).accepted.count;
        if is_sealed(arena.setting, &arena.members[0].row, count) {
            return arena;
        }
        for rank in &others {
            arena.pull(*rank, 0, usize::MAX);
            arena.step(*rank, Time(0), |_| None);
        }
    }
    panic!("the leader does not seal");
}

/// The leader has sealed a list that includes itself, and no other member has seen it. During its
/// next step, the others remove it and decide another list.
#[test]
fn leader_removed_during_its_step_installs_nothing() {
    let mut halted = 0;
    for look in 1..LOOKS_MAX {
        let case = format!("before look {look}");
        let mut arena = group(3);
        settle(&mut arena, &[0, 1, 2], &case);
        arena.wish(0, NodeId(99));
        let mut arena = sealed_by_the_leader(arena);
        for rank in [1, 2] {
            arena.lose(rank, 0);
        }
        settle(&mut arena, &[1, 2], &case);
        let decided = arena.decision.clone().expect("the others go on").members;
        assert_eq!(decided, [NodeId(2), NodeId(3), NodeId(99)], "{case}");
        let mut status = step_with_news_before(&mut arena, 0, look, &case);
        if !status.is_final() {
            arena.pull_all(0);
            status = arena.step(0, Time(0), |_| None);
            judged(&mut arena, 0, &case);
        }
        assert!(matches!(status, Status::Halted(Halt::SuspectedBy(_))), "{case}: {status:?}");
        halted += 1;
    }
    assert_eq!(halted, LOOKS_MAX - 1);
}

/// A new leader is about to adopt the list of its predecessor while the others also suspect the new
/// leader and continue without it.
#[test]
fn leader_suspected_during_its_takeover_halts() {
    for look in 1..LOOKS_MAX {
        let case = format!("before look {look}");
        let mut arena = group(5);
        settle(&mut arena, &[0, 1, 2, 3, 4], &case);
        arena.wish(0, NodeId(99));
        let mut arena = sealed_by_the_leader(arena);
        // Member 2 saw the seal, but members 3 and 4 did not. All promise to follow member 1, which
        // sees that, and is then removed by member 2.
        arena.pull(2, 0, usize::MAX);
        arena.step(2, Time(0), |_| None);
        for rank in [1, 2, 3, 4] {
            arena.lose(rank, 0);
        }
        for rank in [2, 3, 4] {
            arena.step(rank, Time(0), |_| None);
            arena.pull(1, rank, usize::MAX);
        }
        for rank in [2, 3, 4] {
            arena.lose(rank, 1);
        }
        settle(&mut arena, &[2, 3, 4], &case);
        assert!(arena.decision.is_some(), "{case}");
        let mut status = step_with_news_before(&mut arena, 1, look, &case);
        if !status.is_final() {
            arena.pull_all(1);
            status = arena.step(1, Time(0), |_| None);
            judged(&mut arena, 1, &case);
        }
        assert!(matches!(status, Status::Halted(Halt::SuspectedBy(_))), "{case}: {status:?}");
    }
}

/// A member sees its leader's list, and then that all the others have installed it, at any read of
/// its step.
#[test]
fn decision_arriving_during_step_accuses_no_member() {
    for look in 1..LOOKS_MAX {
        let case = format!("before look {look}");
        let mut arena = group(3);
        settle(&mut arena, &[0, 1, 2], &case);
        arena.wish(1, NodeId(99));
        let mut arena = sealed_by_the_leader(arena);
        for rank in [1, 2] {
            arena.pull_all(rank);
            arena.step(rank, Time(0), |_| None);
        }
        arena.pull(0, 1, usize::MAX);
        arena.pull(0, 2, usize::MAX);
        arena.step(0, Time(0), |_| None);
        assert_eq!(arena.status(0), Status::Installed, "{case}");
        for rank in [1, 2] {
            let mut status = step_with_news_before(&mut arena, rank, look, &case);
            if !status.is_final() {
                arena.pull_all(rank);
                status = arena.step(rank, Time(0), |_| None);
                judged(&mut arena, rank, &case);
            }
            assert_eq!(status, Status::Installed, "{case}");
            let accused = arena.members[rank]
                .around
                .causes
                .iter()
                .any(|(_, cause)| *cause == Cause::Misbehaved);
            assert!(!accused, "{case}");
        }
    }
}

/// The leader's list arrives together with the suspicion that it is based on, at any read of a
/// follower's step.
#[test]
fn list_arriving_during_step_waits_for_suspicions() {
    for look in 1..LOOKS_MAX {
        let case = format!("before look {look}");
        let mut arena = group(4);
        settle(&mut arena, &[0, 1, 2, 3], &case);
        arena.crash_now(3);
        arena.lose(0, 3);
        arena.step(0, Time(0), |_| None);
        assert_eq!(arena.accepted(0).accepted.count, 1, "it proposes");
        step_with_news_before(&mut arena, 1, look, &case);
        settle(&mut arena, &[0, 1, 2], &case);
        let decided = arena.decision.clone().map(|decision| decision.members);
        assert_eq!(decided, Some(vec![NodeId(1), NodeId(2), NodeId(3)]), "{case}");
    }
}

/// A list that a member accepted from the previous leader arrives with the suspicion that it is
/// based on, while the next leader takes over.
#[test]
fn adopted_list_waits_for_its_underlying_suspicions() {
    for look in 1..LOOKS_MAX {
        let case = format!("before look {look}");
        let mut arena = group(5);
        settle(&mut arena, &[0, 1, 2, 3, 4], &case);
        // Member 4 is alive, and promises like the others.
        arena.lose(0, 4);
        arena.step(0, Time(0), |_| None);
        // Only member 3 sees the proposal before member 0 is lost.
        arena.pull(3, 0, usize::MAX);
        arena.step(3, Time(0), |_| None);
        let (length, seen) =
            (arena.members[0].log.len(), (0..5).map(|reader| arena.members[reader].seen[0]));
        let seen: Vec<usize> = seen.collect();
        arena.crash(0, length, &seen);
        for rank in [1, 2, 3, 4] {
            arena.lose(rank, 0);
        }
        for rank in [2, 3, 4] {
            arena.step(rank, Time(0), |_| None);
        }
        arena.pull(1, 2, usize::MAX);
        arena.pull(1, 4, usize::MAX);
        step_with_news_before(&mut arena, 1, look, &case);
        settle(&mut arena, &[1, 2, 3], &case);
        let decided = arena.decision.clone().map(|decision| decision.members);
        assert_eq!(decided, Some(vec![NodeId(2), NodeId(3), NodeId(4)]), "{case}");
    }
}
