//! Cases that broke other systems, one per test, and the corner cases of the rules.

use tramontane_core::ids::{NodeId, Rank, Time};
use tramontane_core::layout::ViewColumn;
use tramontane_core::view::{Cause, Halt, Status, ViewOptions};

use crate::arena::{Arena, setting, timeless};
use crate::chain::{Chain, ChainReached};
use crate::oracle::{check, is_sealed};

mod membership;

/// Returns a group in which all members belong to one subgroup and send in it.
fn group(members: u16) -> Arena {
    group_with(members, timeless())
}

fn group_with(members: u16, options: ViewOptions) -> Arena {
    let nodes: Vec<NodeId> = (1..=u32::from(members)).map(NodeId).collect();
    let everyone = (0..members).map(Rank).collect();
    Arena::new(Box::leak(setting(1, &nodes, &[everyone], options).into()))
}

fn nodes(ids: &[u32]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId).collect()
}

/// Takes one step, which the oracle checks.
fn step(arena: &mut Arena, rank: usize, now: u64, message: Option<u64>) -> Status {
    let status = arena.step(rank, Time(now), |_| message);
    check(arena, rank).unwrap_or_else(|wrong| panic!("{wrong}"));
    status
}

/// Lets these members pull everything from each other, and steps them until nothing changes.
fn settle(arena: &mut Arena, ranks: &[usize]) {
    for _ in 0..60 {
        let before = arena.fingerprint();
        for rank in ranks.iter().copied().filter(|rank| arena.is_active(*rank)).collect::<Vec<_>>()
        {
            for writer in ranks.iter().filter(|writer| **writer != rank) {
                arena.pull(rank, *writer, usize::MAX);
            }
            step(arena, rank, 0, None);
        }
        if arena.fingerprint() == before {
            return;
        }
    }
    panic!("the group does not settle");
}

/// Reports the loss of a member to all of these readers.
fn tell(arena: &mut Arena, readers: &[usize], lost: usize) {
    for reader in readers {
        arena.lose(*reader, lost);
    }
}

#[test]
fn takeover_adopts_the_predecessors_sealed_list() {
    let mut arena = group(5);
    settle(&mut arena, &[0, 1, 2, 3, 4]);
    // A message from each member reaches all members but 0, whose count remains behind: without
    // member 0 the trim would be larger.
    for rank in 0..5 {
        step(&mut arena, rank, 0, Some(rank as u64));
    }
    settle(&mut arena, &[1, 2, 3, 4]);
    arena.pull(1, 0, usize::MAX);
    arena.pull(2, 0, usize::MAX);
    arena.pull(3, 0, usize::MAX);
    settle(&mut arena, &[1, 2, 3, 4]);
    assert!(arena.members[1].around.parts[0].received > arena.members[0].around.parts[0].received);
    // Member 4 is lost; member 0 leads, and all accept, wedge and publish a final count. Only
    // member 3 sees the seal by member 0.
    arena.crash_now(4);
    tell(&mut arena, &[0, 1, 2, 3], 4);
    step(&mut arena, 0, 0, None);
    for rank in 1..4 {
        arena.pull(rank, 0, usize::MAX);
        step(&mut arena, rank, 0, None);
        step(&mut arena, rank, 0, None);
        arena.pull(0, rank, usize::MAX);
    }
    step(&mut arena, 0, 0, None);
    let count = arena.accepted(0).accepted.count;
    assert!(is_sealed(arena.setting, &arena.members[0].row, count), "0 has sealed");
    let trim =
        arena.members[0].row[arena.setting.cell(ViewColumn::Trim(Default::default())).unwrap()];
    arena.pull(3, 0, usize::MAX);
    step(&mut arena, 3, 0, None);
    let length = arena.members[0].log.len();
    let seen: Vec<usize> = (0..5).map(|reader| arena.members[reader].seen[0]).collect();
    arena.crash(0, length, &seen);
    tell(&mut arena, &[1, 2, 3], 0);
    settle(&mut arena, &[1, 2, 3]);
    let decision = arena.decision.clone().expect("1 has taken over");
    // The sealed list is adopted unchanged: member 0 is in the next view, and its count bounds the
    // trim.
    assert_eq!(decision.members, nodes(&[1, 2, 3, 4]));
    assert_eq!(decision.trims, [Some(trim - 1)]);
    assert!([1, 2, 3].iter().all(|rank| arena.status(*rank) == Status::Installed));
}

#[test]
fn takeover_extends_an_unsealed_proposal() {
    let mut arena = group(5);
    settle(&mut arena, &[0, 1, 2, 3, 4]);
    arena.crash_now(4);
    arena.lose(0, 4);
    step(&mut arena, 0, 0, None);
    // Only member 2 sees the proposal before member 0 is lost.
    arena.pull(2, 0, usize::MAX);
    step(&mut arena, 2, 0, None);
    let length = arena.members[0].log.len();
    let seen: Vec<usize> = (0..5).map(|reader| arena.members[reader].seen[0]).collect();
    arena.crash(0, length, &seen);
    tell(&mut arena, &[1, 2, 3], 0);
    settle(&mut arena, &[1, 2, 3]);
    assert_eq!(arena.decision.expect("decided").members, nodes(&[2, 3, 4]), "both in one change");
}

/// Lets member 0 of three seal the list that lets node 9 join. Only member 2 sees the seal before
/// member 0 fails.
fn sealed_for_one_of_two_survivors(mut arena: Arena) -> Arena {
    settle(&mut arena, &[0, 1, 2]);
    arena.wish(0, NodeId(9));
    while !is_sealed(arena.setting, &arena.members[0].row, arena.accepted(0).accepted.count) {
        for rank in [1, 2] {
            arena.pull(0, rank, usize::MAX);
        }
        step(&mut arena, 0, 0, None);
        let count = arena.accepted(0).accepted.count;
        if !is_sealed(arena.setting, &arena.members[0].row, count) {
            for rank in [1, 2] {
                arena.pull(rank, 0, usize::MAX);
                step(&mut arena, rank, 0, None);
            }
        }
    }
    arena.pull(2, 0, usize::MAX);
    let length = arena.members[0].log.len();
    let seen: Vec<usize> = (0..3).map(|reader| arena.members[reader].seen[0]).collect();
    arena.crash(0, length, &seen);
    arena
}

#[test]
fn takeover_waits_for_promises_and_finds_earlier_acceptances() {
    let mut arena = sealed_for_one_of_two_survivors(group(3));
    // Member 2 accepts the seal; member 1 suspects member 0 and sees nothing from member 2.
    step(&mut arena, 2, 0, None);
    assert!(arena.members[2].echoed);
    tell(&mut arena, &[1, 2], 0);
    let before = arena.accepted(1).accepted;
    step(&mut arena, 1, 0, None);
    assert_eq!(arena.leader(1), 1);
    assert_eq!(arena.accepted(1).accepted, before, "1 proposes before 2 has promised");
    settle(&mut arena, &[1, 2]);
    // Together with the promise, member 1 sees the seal and adopts it.
    assert_eq!(arena.decision.expect("1 has taken over").members, nodes(&[1, 2, 3, 9]));
}

#[test]
fn suspected_leaders_list_is_refused_after_a_promise() {
    let mut made = setting(1, &nodes(&[1, 2, 3]), &[(0..3).map(Rank).collect()], timeless());
    // The next view's memory is ready at the third call: member 2 sees the seal, but cannot accept
    // it yet.
    made.prepare_calls = 3;
    let mut arena = sealed_for_one_of_two_survivors(Arena::new(Box::leak(made.into())));
    tell(&mut arena, &[1, 2], 0);
    step(&mut arena, 2, 0, None);
    let promised = arena.accepted(2);
    assert_eq!((promised.promise, arena.members[2].echoed), (Rank(1), false));
    // Member 1 sees the promise and the acceptance with it, and takes over without the seal.
    arena.pull(1, 2, usize::MAX);
    step(&mut arena, 1, 0, None);
    assert!(arena.accepted(1).accepted > promised.accepted, "1 proposes");
    // The local copy of member 0's row still shows the seal, and the memory is ready by now.
    step(&mut arena, 2, 0, None);
    assert_eq!(arena.accepted(2), promised, "2 accepts from a leader that it promised to ignore");
    settle(&mut arena, &[1, 2]);
    assert_eq!(arena.decision.expect("1 has taken over").members, nodes(&[2, 3, 9]));
}

#[test]
fn messages_in_flight_are_resent_first_and_once() {
    let mut reached = ChainReached::default();
    for seed in 7_000..7_040 {
        // The chain's own judge checks that each survivor's messages are delivered once, in order,
        // at every member.
        reached.add(&Chain::new(seed).run().unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")));
    }
    assert!(reached.resent > 100 && reached.views > 60, "{reached:?}");
}

#[test]
fn simultaneous_start_causes_no_suspicion() {
    let options = ViewOptions { members_max: 16, ..ViewOptions::default() };
    let mut arena = group_with(16, options);
    for round in 0..200_u64 {
        for rank in 0..16 {
            // At first no member sees anything from the others.
            if round > 5 {
                arena.pull_all(rank);
            }
            assert_eq!(step(&mut arena, rank, round * 500_000, None), Status::Steady);
        }
    }
    assert!(arena.members.iter().all(|member| member.around.cut.is_empty()));
}

#[test]
fn late_starting_member_sees_earlier_messages() {
    let options = ViewOptions {
        heartbeat_interval_ns: 1,
        failure_timeout_ns: 10,
        first_timeout_ns: 1_000,
        ..ViewOptions::default()
    };
    let late = |comes_at: u64, until: u64| {
        let mut arena = group_with(3, options);
        for now in 1..until {
            for rank in [0, 1, 2] {
                if rank == 2 && now < comes_at || !arena.is_active(rank) {
                    continue;
                }
                arena.pull_all(rank);
                let message = if rank == 0 && now == 3 { Some(1) } else { None };
                step(&mut arena, rank, now, message);
            }
        }
        arena
    };
    // The member starts in time: it receives messages that were sent before it started, and has not
    // been suspected in the meantime.
    let arena = late(500, 600);
    assert!((0..3).all(|rank| arena.status(rank) == Status::Steady));
    assert!((0..3).all(|rank| arena.members[rank].around.parts[0].delivered >= 1));
    // The member never starts: it is excluded, later than a member that has already been seen would
    // be.
    let arena = late(u64::MAX, 900);
    assert_eq!(arena.status(0), Status::Steady);
    let arena = late(u64::MAX, 1_200);
    assert_eq!(arena.decision.expect("decided").members, nodes(&[1, 2]));
}

#[test]
fn removed_process_halts_upon_waking() {
    let options = ViewOptions {
        heartbeat_interval_ns: 1,
        failure_timeout_ns: 10,
        first_timeout_ns: 10,
        ..ViewOptions::default()
    };
    let mut arena = group_with(3, options);
    let run = |arena: &mut Arena, ranks: &[usize], from: u64, until: u64| {
        for now in from..until {
            for rank in ranks.iter().copied() {
                if arena.is_active(rank) {
                    arena.pull_all(rank);
                    step(arena, rank, now, Some(now << 8 | rank as u64));
                }
            }
        }
    };
    run(&mut arena, &[0, 1, 2], 1, 20);
    let delivered = arena.members[0].around.parts[0].delivered;
    assert!(delivered > 0);
    run(&mut arena, &[1, 2], 20, 60);
    assert_eq!(arena.decision.as_ref().expect("decided").members, nodes(&[2, 3]));
    // The process wakes, and sees first nothing new, then everything.
    let stable = arena.members[0].around.parts[0].delivered;
    step(&mut arena, 0, 60, Some(99));
    arena.pull_all(0);
    assert!(matches!(step(&mut arena, 0, 61, Some(100)), Status::Halted(Halt::SuspectedBy(_))));
    step(&mut arena, 0, 62, Some(101));
    let trim = arena.decision.as_ref().expect("decided").trims[0].expect("a trim");
    let after = arena.members[0].around.parts[0].delivered;
    assert!(after >= stable && after <= trim, "{stable} {after} {trim}");
}

const TIMEOUT: u64 = 1_000;

/// Returns three members that suspect each other after a timeout that is ten heartbeats long.
fn group_of_a_timeout() -> Arena {
    let options = ViewOptions {
        heartbeat_interval_ns: TIMEOUT / 10,
        failure_timeout_ns: TIMEOUT,
        first_timeout_ns: TIMEOUT,
        ..ViewOptions::default()
    };
    group_with(3, options)
}

#[test]
fn long_upcalls_are_tolerated_but_losses_detected() {
    let mut arena = group_of_a_timeout();
    // Every member is repeatedly in an upcall for nine tenths of the timeout, and so checks the
    // view that rarely.
    let mut run = |ranks: &[usize], turns: std::ops::Range<u64>| {
        for turn in turns {
            for rank in
                ranks.iter().copied().filter(|rank| arena.is_active(*rank)).collect::<Vec<_>>()
            {
                arena.pull_all(rank);
                step(&mut arena, rank, 1 + turn * TIMEOUT * 9 / 10, None);
            }
        }
        arena.decision.clone()
    };
    assert_eq!(run(&[0, 1, 2], 0..100), None);
    let decision = run(&[0, 1], 100..110);
    assert_eq!(decision.expect("it is noticed within ten upcalls").members, nodes(&[1, 2]));
}

#[test]
fn waking_process_accuses_no_other_member() {
    let mut arena = group_of_a_timeout();
    for now in (1..3_000).step_by(100) {
        for rank in [0, 1, 2] {
            arena.pull_all(rank);
            step(&mut arena, rank, now, None);
        }
    }
    // The others' writes arrive a third of a timeout after the process woke; by then it has checked
    // them often.
    for now in (9_000..9_333).step_by(10) {
        assert_eq!(step(&mut arena, 0, now, None), Status::Steady);
    }
    assert!(arena.members[0].around.cut.is_empty());
}

/// Known limit (VIE-13): if the link between two members fails, each suspects the other, and a
/// third decides.
#[test]
fn failed_link_removes_one_of_its_two_members() {
    let mut arena = group(3);
    settle(&mut arena, &[0, 1, 2]);
    arena.lose(0, 1);
    arena.lose(1, 0);
    step(&mut arena, 0, 0, None);
    step(&mut arena, 1, 0, None);
    // The third member sees both suspicions; it takes them in rank order, so the suspicion by
    // member 0 comes first.
    settle(&mut arena, &[2, 0, 1]);
    assert_eq!(arena.decision.as_ref().expect("decided").members, nodes(&[1, 3]));
    assert!(matches!(arena.status(1), Status::Halted(_)));
}

#[test]
fn decision_is_learnt_from_members_that_installed_it() {
    let mut arena = group(3);
    settle(&mut arena, &[0, 1, 2]);
    arena.leave(2);
    arena.pull(0, 2, usize::MAX);
    // Members 1 and 2 echo, but member 1 sees nothing from member 2 until member 0 has decided,
    // installed the view, and exited.
    while step(&mut arena, 0, 0, None) != Status::Installed {
        for rank in [1, 2] {
            arena.pull(rank, 0, usize::MAX);
            step(&mut arena, rank, 0, None);
            arena.pull(0, rank, usize::MAX);
        }
    }
    assert_eq!(arena.status(1), Status::Wedged);
    arena.pull(1, 0, usize::MAX);
    assert_eq!(step(&mut arena, 1, 0, None), Status::Installed);
}

#[test]
fn installed_member_stays_trusted_until_decision_is_learnt() {
    let options = ViewOptions {
        heartbeat_interval_ns: 1,
        failure_timeout_ns: 10,
        first_timeout_ns: 1_000,
        ..ViewOptions::default()
    };
    let mut arena = group_with(3, options);
    settle(&mut arena, &[0, 1, 2]);
    arena.leave(2);
    arena.pull(0, 2, usize::MAX);
    while step(&mut arena, 0, 0, None) != Status::Installed {
        for rank in [1, 2] {
            arena.pull(rank, 0, usize::MAX);
            step(&mut arena, rank, 0, None);
            arena.pull(0, rank, usize::MAX);
        }
    }
    for now in [5, 10] {
        assert_eq!(step(&mut arena, 1, now, None), Status::Wedged);
    }
    // Member 0 has sent its last heartbeat in this view, and the next one is overdue by a timeout.
    arena.pull(1, 0, usize::MAX);
    assert_eq!(step(&mut arena, 1, 12, None), Status::Installed);
}

#[test]
fn acceptance_is_published_after_list_and_counts() {
    let mut arena = group(3);
    settle(&mut arena, &[0, 1, 2]);
    arena.wish(0, NodeId(9));
    step(&mut arena, 0, 0, None);
    arena.pull(1, 0, usize::MAX);
    let before = arena.members[1].log.len();
    step(&mut arena, 1, 0, None);
    let last = |column| {
        let cell = arena.setting.cell(column).expect("a column") as u16;
        arena.members[1].log[before..]
            .iter()
            .rposition(|write| write.0 == cell)
            .expect("it is written")
    };
    let stance = last(ViewColumn::Stance);
    assert!(
        last(ViewColumn::Entry(0)) < stance
            && last(ViewColumn::Wedged(Default::default())) < stance
    );
}

#[test]
fn subgroup_without_survivors_has_no_trim() {
    let made = setting(
        1,
        &nodes(&[1, 2, 3]),
        &[vec![Rank(0), Rank(1), Rank(2)], vec![Rank(2)]],
        timeless(),
    );
    let mut arena = Arena::new(Box::leak(made.into()));
    settle(&mut arena, &[0, 1, 2]);
    arena.crash_now(2);
    tell(&mut arena, &[0, 1], 2);
    settle(&mut arena, &[0, 1]);
    assert_eq!((arena.trim(0, 0), arena.trim(0, 1)), (Some(0), None));
    assert_eq!(arena.status(1), Status::Installed);
}

#[test]
fn member_reports_why_it_disconnected_a_peer() {
    let mut arena = group(3);
    settle(&mut arena, &[0, 1, 2]);
    arena.lose(1, 2);
    step(&mut arena, 1, 0, None);
    assert_eq!(arena.members[1].around.causes, [(Rank(2), Cause::Lost)]);
    arena.pull(0, 1, usize::MAX);
    step(&mut arena, 0, 0, None);
    assert_eq!(arena.members[0].around.causes, [(Rank(2), Cause::SuspectedBy(Rank(1)))]);
}
