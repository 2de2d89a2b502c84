//! Logged groups: durable answers, and a restart of all members.

use tramontane::group::StartError;
use tramontane::serde::{Deserialize, Serialize};
use tramontane::typed::{Durability, NotStarted};
use tramontane::{NotAnswered, Replicated, StateMachine, Stopped};

use crate::support::{PATIENCE, SumCommand, SumGroup, await_that, block_on, outcomes};

const LEVELS: [Durability; 3] = [Durability::Here, Durability::Majority, Durability::Everywhere];

#[test]
fn durable_proposals_are_answered_at_each_level() {
    let group = SumGroup::of(3).logged();
    let members = group.start_all([0, 1, 2]);
    let (member, _) = &members[0];
    for (number, level) in (1..).zip(LEVELS) {
        let answer = member.propose_durable(SumCommand::Add(2), level).wait(PATIENCE);
        assert_eq!(answer, Ok((number, 2 * number)), "{level:?}");
    }
    assert_eq!(block_on(member.propose_durable(SumCommand::Add(1), Durability::Here)), Ok((4, 7)));
}

#[test]
fn durable_proposal_is_refused_without_logs() {
    let group = SumGroup::of(1);
    let [(member, _)] = group.start_all([0]);
    let refused = member.propose_durable(SumCommand::Add(1), Durability::Here).wait(PATIENCE);
    assert!(matches!(refused, Err(NotAnswered::NotLogged(_))), "{refused:?}");
    assert_eq!(member.query_linearizable(|ledger| ledger.sum).wait(PATIENCE), Ok(0));
}

#[test]
fn closed_member_answers_durable_proposals() {
    let group = SumGroup::of(2).logged();
    let [(member, _), (_other, gate)] = group.start_all([0, 1]);
    let closed = gate.close();
    // Applied here, but the other member does not log it before it has applied it.
    let applied = member.propose_durable(SumCommand::Add(1), Durability::Everywhere);
    gate.await_waiting();
    await_that("it is applied", || member.query_local(|ledger| ledger.sum) == Ok(1));
    let sent = member.propose_durable(SumCommand::Add(1), Durability::Majority);
    let outcomes = outcomes(vec![applied, sent], || drop(member.close()));
    assert_eq!(outcomes[0], Err(NotAnswered::NotDurable(Stopped::Closed)));
    assert!(
        matches!(&outcomes[1], Err(NotAnswered::Unknown(_) | NotAnswered::NotDurable(_))),
        "{outcomes:?}"
    );
    drop(closed);
}

#[test]
fn restarted_group_continues_with_logged_state() {
    let group = SumGroup::of(3).logged().remembered();
    let members = group.start_all([0, 1, 2]);
    for (member, _) in &members {
        member
            .propose_durable(SumCommand::Add(7), Durability::Everywhere)
            .wait(PATIENCE)
            .expect("it is durable");
    }
    // All of them end without notice.
    drop(members);
    let members = group.start_all([0, 1, 2]);
    for (number, (member, _)) in (1..).zip(&members) {
        // Own commands from before the restart have no waiter.
        let answer = member.propose(SumCommand::Add(1)).wait(PATIENCE);
        assert_eq!(answer, Ok((3 + number, 21 + number)));
    }
}

/// A later version of the program, which cannot apply what its log contains.
#[derive(Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct Refusing(u64);

impl StateMachine for Refusing {
    type Command = SumCommand;
    type Answer = ();

    fn apply(&mut self, _: SumCommand) {
        panic!("not this one");
    }
}

#[test]
fn panic_during_restart_fails_the_start() {
    let group = SumGroup::of(1).logged().remembered();
    let [(member, _)] = group.start_all([0]);
    member
        .propose_durable(SumCommand::Add(7), Durability::Here)
        .wait(PATIENCE)
        .expect("it is durable");
    drop(member);
    let started =
        Replicated::start(group.description.clone(), group.options(0), Refusing(0)).map(drop);
    match started {
        Err(NotStarted::Start(StartError::Stopped(Stopped::Panicked(text)))) => {
            assert_eq!(text, "not this one");
        }
        other => panic!("{other:?}"),
    }
}
