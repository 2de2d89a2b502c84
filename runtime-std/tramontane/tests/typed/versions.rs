//! Versions of the state, their times, and the history that members keep.

use std::time::{Duration, SystemTime};

use tramontane::NotAnswered;
use tramontane::typed::{Durability, StateVersion};

use crate::support::{PATIENCE, SumCommand, SumGroup, await_that, block_on, propose};

#[test]
fn members_agree_on_states_of_the_past() {
    let mut group = SumGroup::of(3);
    group.limits.history = 1_000;
    let members = group.start_all([0, 1, 2]);
    let started = SystemTime::now();
    std::thread::scope(|scope| {
        for (member, _) in &members {
            scope.spawn(|| {
                for proposal in propose(member, 100) {
                    proposal.wait(PATIENCE).expect("an answer");
                }
            });
        }
    });
    let ended = SystemTime::now();
    let newest = |member: usize| members[member].0.version().expect("it runs");
    await_that("all apply", || (0..3).all(|member| newest(member).number == 300));
    assert_eq!([newest(0), newest(1)], [newest(2); 2]);
    for number in [0, 1, 77, 299, 300] {
        let sums = members.each_ref().map(|(member, _)| {
            let state = member.state_at(number).expect("it is kept");
            (state.commands, state.sum)
        });
        assert_eq!(sums, [(number, number); 3]);
    }
    let half = started + ended.duration_since(started).expect("later") / 2;
    let counts = members
        .each_ref()
        .map(|(member, _)| member.state_at_time(half).wait(PATIENCE).expect("it is kept").commands);
    assert_eq!(counts, [counts[0]; 3]);
    let before = block_on(members[0].0.state_at_time(started)).expect("it is kept");
    assert_eq!(before.commands, 0);
    let now = members[1].0.state_at_time(SystemTime::now()).wait(PATIENCE).expect("it is kept");
    assert_eq!(now.commands, 300, "nobody proposes, and yet the time has come");
    let future = SystemTime::now() + Duration::from_secs(3_600);
    let early = members[1].0.state_at_time(future).wait(PATIENCE).map(|_| ());
    assert_eq!(early, Err(NotAnswered::NotYet { newest: newest(1) }));
}

#[test]
fn joining_member_begins_its_history() {
    let mut group = SumGroup::of(2);
    group.description.initial = vec![0];
    group.limits.history = 10;
    let [(first, _)] = group.start_all([0]);
    for proposal in propose(&first, 100) {
        proposal.wait(PATIENCE).expect("an answer");
    }
    let (second, _) = group.start(1).expect("it joins");
    let joined = second.version().expect("it runs");
    assert_eq!(joined, first.version().expect("it runs"));
    let refused = second.state_at(99).map(|_| ());
    assert_eq!(refused, Err(NotAnswered::NotKept { oldest: joined }));
    assert!(first.state_at(90).is_ok() && first.state_at(79).is_err());
    let command = SumCommand::Text("abc".to_owned());
    second.propose(command).wait(PATIENCE).expect("an answer");
    await_that("both apply", || first.version() == second.version());
    for member in [&first, &second] {
        assert_eq!(member.state_at(100).map(|state| state.sum), Ok(100));
        assert_eq!(member.state_at(101).map(|state| state.sum), Ok(103));
    }
}

#[test]
fn durable_version_survives_a_restart_with_its_time() {
    let mut group = SumGroup::of(3).logged().remembered();
    group.limits.history = 100;
    let members = group.start_all([0, 1, 2]);
    for proposal in propose(&members[1].0, 20) {
        proposal.wait(PATIENCE).expect("an answer");
    }
    let mut versions: Vec<StateVersion> = Vec::new();
    for level in [Durability::Here, Durability::Majority, Durability::Everywhere] {
        let notice = members[1].0.durable_version(level).expect("it has a log");
        versions.push(notice.wait(PATIENCE).expect("it becomes durable"));
    }
    assert!(versions.iter().all(|version| version.number == 20 && *version == versions[0]));
    members.iter().for_each(|(member, _)| drop(member.close()));
    drop(members);
    let members = group.start_all([0, 1, 2]);
    for (member, _) in &members {
        let version = member.version().expect("it runs");
        assert_eq!(version, versions[0]);
        assert_eq!(member.state_at(20).map(|state| state.sum), Ok(20));
    }
}

#[test]
fn durable_version_is_refused_without_logs() {
    let group = SumGroup::of(1);
    let [(member, _)] = group.start_all([0]);
    let refused = member.durable_version(Durability::Here).map(|_| ());
    assert!(matches!(refused, Err(NotAnswered::NotLogged(_))), "{refused:?}");
}
