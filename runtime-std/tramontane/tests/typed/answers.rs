//! Answers of proposals and queries while all members run.

use std::collections::BTreeSet;
use std::time::Duration;

use tramontane::NotAnswered;

use crate::support::{PATIENCE, SumCommand, SumGroup, await_that, block_on, propose};

#[test]
fn concurrent_proposals_get_distinct_answers_in_order() {
    const EACH: u64 = 300;
    let group = SumGroup::of(3);
    let members = group.start_all([0, 1, 2]);
    let answers: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = members
            .iter()
            .flat_map(|member| [member, member])
            .map(|(member, _)| {
                let member = member.clone();
                scope.spawn(move || {
                    let proposals = propose(&member, EACH);
                    let answers = proposals.into_iter().map(|proposal| proposal.wait(PATIENCE));
                    answers.map(|answer| answer.expect("an answer").0).collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for of_thread in &answers {
        assert!(of_thread.is_sorted(), "the commands of a thread keep their order");
    }
    let all: BTreeSet<u64> = answers.into_iter().flatten().collect();
    assert_eq!(all, (1..=6 * EACH).collect());
    for (member, _) in &members {
        let read = member.query_linearizable(|ledger| (ledger.commands, ledger.sum)).wait(PATIENCE);
        assert_eq!(read, Ok((6 * EACH, 6 * EACH)));
    }
}

#[test]
fn any_executor_can_await_proposals_and_queries() {
    let group = SumGroup::of(1);
    let [(member, _)] = group.start_all([0]);
    let text = |text: &str| SumCommand::Text(text.to_owned());
    block_on(async {
        let (first, second) = (member.propose(text("four")), member.propose(text("five ")));
        assert_eq!(second.await, Ok((2, 9)));
        assert_eq!(first.await, Ok((1, 4)), "an answer waits until it is taken");
        assert_eq!(member.query_linearizable(|ledger| ledger.sum).await, Ok(9));
    });
}

/// No thread waits for an answer, and so nobody but the member itself sends them.
#[test]
fn abandoned_proposals_are_applied() {
    let group = SumGroup::of(2);
    let [(member, _), (other, _)] = group.start_all([0, 1]);
    for _ in 0..3 {
        drop(propose(&member, 500));
        std::thread::sleep(Duration::from_millis(5));
    }
    for member in [&member, &other] {
        await_that("all are applied", || member.query_local(|ledger| ledger.sum) == Ok(1_500));
    }
    assert_eq!(member.propose(SumCommand::Add(1)).wait(PATIENCE), Ok((1_501, 1_501)));
}

/// A thread that reads the state must not wait for its own read by applying a command.
#[test]
fn wait_within_local_query_ends_with_timeout() {
    let group = SumGroup::of(1);
    let [(member, _)] = group.start_all([0]);
    let brief = Duration::from_millis(20);
    let proposal = member.query_local(|_| member.propose(SumCommand::Add(1)).wait(brief));
    assert_eq!(proposal, Ok(Err(NotAnswered::TimedOut(brief))));
    assert_eq!(member.propose(SumCommand::Add(1)).wait(PATIENCE), Ok((2, 2)));
}

#[test]
fn linearizable_query_waits_for_answered_commands() {
    let group = SumGroup::of(2);
    let [(quick, _), (slow, gate)] = group.start_all([0, 1]);
    let closed = gate.close();
    assert_eq!(quick.propose(SumCommand::Add(5)).wait(PATIENCE), Ok((1, 5)));
    gate.await_waiting();
    let query = slow.query_linearizable(|ledger| ledger.sum);
    drop(closed);
    assert_eq!(query.wait(PATIENCE), Ok(5));
    assert_eq!(slow.query_local(|ledger| ledger.sum), Ok(5), "so has the copy itself");
}

#[test]
fn joining_node_receives_state_and_proposes() {
    let mut group = SumGroup::of(4);
    group.description.initial = vec![0, 1, 2];
    let [(first, _), _second, _third] = group.start_all([0, 1, 2]);
    assert_eq!(first.propose(SumCommand::Add(40)).wait(PATIENCE), Ok((1, 40)));
    let (joined, _) = group.start(3).expect("it joins");
    assert_eq!(joined.propose(SumCommand::Add(2)).wait(PATIENCE), Ok((2, 42)));
    await_that("the view is seen", || first.status().members == [0, 1, 2, 3]);
}

/// The views change while proposals are in flight, and no answer is lost or given twice.
#[test]
fn proposals_survive_view_changes() {
    let mut group = SumGroup::of(4);
    group.description.initial = vec![0, 1, 2];
    let [(first, _), (second, _), (third, _)] = group.start_all([0, 1, 2]);
    std::thread::scope(|scope| {
        let proposing = [&first, &second].map(|member| {
            scope.spawn(|| {
                let waits = (0..40).flat_map(|_| {
                    let proposals = propose(member, 25);
                    proposals.into_iter().map(|proposal| proposal.wait(PATIENCE))
                });
                waits.map(|answer| answer.expect("an answer").0).collect::<Vec<_>>()
            })
        });
        drop(third);
        let (fourth, _) = group.start(3).expect("it joins");
        fourth.leave(PATIENCE).expect("it leaves");
        let answers = proposing.map(|thread| thread.join().expect("no panic"));
        assert!(answers.iter().all(|of_thread| of_thread.is_sorted()));
        let all: BTreeSet<u64> = answers.into_iter().flatten().collect();
        assert_eq!(all, (1..=2_000).collect());
    });
}
