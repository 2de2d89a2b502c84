//! Each way in which a member can end. Nobody waits for ever.

use std::time::Duration;

use tramontane::group::StartError;
use tramontane::typed::{NotStarted, Replicated};
use tramontane::{NotAnswered, Stopped, start};

use crate::support::{
    PATIENCE, SumCommand, SumGroup, SumLedger, WINDOW, await_that, block_on, outcomes, propose,
};

/// Checks that the commands in slots are unknown, that the others were never sent, and that nothing
/// more is answered.
fn assert_ended(
    outcomes: &[Result<(u64, u64), NotAnswered>],
    member: &Replicated<SumLedger>,
    is_reason: impl Fn(&Stopped) -> bool,
) {
    let in_slots = WINDOW as usize;
    for (number, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Err(NotAnswered::Unknown(why)) if number < in_slots => assert!(is_reason(why)),
            Err(NotAnswered::NotSent(why)) => assert!(is_reason(why), "{why}"),
            other => panic!("{number}: {other:?}"),
        }
    }
    assert!(member.stopped().is_some_and(|why| is_reason(&why)), "{:?}", member.stopped());
    let late = member.propose(SumCommand::Add(1)).wait(PATIENCE);
    assert!(matches!(&late, Err(NotAnswered::NotSent(why)) if is_reason(why)), "{late:?}");
    let read = member.query_local(|ledger| ledger.sum);
    assert!(matches!(&read, Err(NotAnswered::NotRead(why)) if is_reason(why)), "{read:?}");
    let read = member.query_linearizable(|ledger| ledger.sum).wait(PATIENCE);
    assert!(matches!(&read, Err(NotAnswered::NotRead(why)) if is_reason(why)), "{read:?}");
}

/// Nothing becomes stable while the other member is held up.
#[test]
fn closed_member_answers_all_proposals() {
    let group = SumGroup::of(2);
    let [(member, _), (_other, gate)] = group.start_all([0, 1]);
    let closed = gate.close();
    assert_eq!(member.propose(SumCommand::Add(1)).wait(PATIENCE), Ok((1, 1)));
    gate.await_waiting();
    let query = member.query_linearizable(|ledger| ledger.sum);
    let outcomes = outcomes(propose(&member, 40), || {
        assert_eq!(member.close(), Stopped::Closed);
    });
    assert!(outcomes.iter().any(|one| matches!(one, Err(NotAnswered::Unknown(_)))));
    assert_ended(&outcomes, &member, |why| *why == Stopped::Closed);
    assert_eq!(query.wait(PATIENCE), Err(NotAnswered::NotRead(Stopped::Closed)));
    drop(closed);
}

#[test]
fn dropped_handle_answers_all_proposals() {
    let group = SumGroup::of(2);
    let [(member, _), (_other, gate)] = group.start_all([0, 1]);
    let closed = gate.close();
    assert_eq!(member.propose(SumCommand::Add(1)).wait(PATIENCE), Ok((1, 1)));
    gate.await_waiting();
    let proposals = propose(&member, 40);
    let clone = member.clone();
    drop(member);
    assert_eq!(clone.stopped(), None, "a clone keeps the member");
    for outcome in outcomes(proposals, || drop(clone)) {
        let closed = Err(Stopped::Closed);
        let why = outcome.map_err(|error| match error {
            NotAnswered::Unknown(why) | NotAnswered::NotSent(why) => why,
            other => panic!("{other}"),
        });
        assert_eq!(why.map(drop), closed);
    }
    drop(closed);
}

#[test]
fn leaving_member_applies_its_commands_first() {
    let group = SumGroup::of(3);
    let [(member, _), (second, _), _third] = group.start_all([0, 1, 2]);
    let outcomes = outcomes(propose(&member, 200), || member.leave(PATIENCE).expect("it leaves"));
    let expected: Vec<_> = (1..=200).map(|number| Ok((number, number))).collect();
    assert_eq!(outcomes, expected);
    assert_ended(&[], &member, |why| *why == Stopped::Left);
    assert_eq!(second.query_linearizable(|ledger| ledger.sum).wait(PATIENCE), Ok(200));
}

#[test]
fn tasks_await_start_leave_and_end() {
    let group = SumGroup::of(1);
    let (description, options) = (group.description.clone(), group.options(0));
    let member = block_on(async {
        let starting =
            Replicated::start_in_thread(description, options, group.limits, SumLedger::default());
        let member = starting.expect("a thread").await.expect("it starts");
        assert_eq!(member.propose(SumCommand::Add(1)).await, Ok((1, 1)));
        member
    });
    let ended = std::thread::spawn({
        let ended = member.ended();
        move || block_on(ended)
    });
    block_on(async {
        let leaving = member.leave_in_thread(PATIENCE).expect("a thread");
        assert_eq!(leaving.await, Ok(()));
        assert_eq!(member.ended().await, Stopped::Left, "it has ended before");
    });
    assert_eq!(ended.join().expect("no panic"), Stopped::Left);
}

/// A member whose `apply` takes longer than the failure timeout is removed.
#[test]
fn removed_member_answers_all_proposals() {
    let mut group = SumGroup::of(3);
    // The two others must not lose each other on a busy machine.
    group.description.failure_timeout_ms = 1_500;
    let [(first, _), (member, gate), _third] = group.start_all([0, 1, 2]);
    let closed = gate.close();
    assert_eq!(first.propose(SumCommand::Add(1)).wait(PATIENCE), Ok((1, 1)));
    gate.await_waiting();
    let proposals = propose(&member, 40);
    let outcomes = outcomes(proposals, || {
        await_that("the member is removed", || {
            assert_eq!(first.stopped(), None);
            first.status().members == [0, 2]
        });
        drop(closed);
    });
    assert_ended(&outcomes, &member, |why| matches!(why, Stopped::Halted { .. }));
    let sum = first.query_linearizable(|ledger| ledger.sum).wait(PATIENCE).expect("they go on");
    let unknown = outcomes.iter().filter(|one| matches!(one, Err(NotAnswered::Unknown(_))));
    assert!(sum <= 1 + unknown.count() as u64, "what was not sent is not applied: {sum}");
}

#[test]
fn minority_member_answers_all_proposals() {
    let mut group = SumGroup::of(3);
    group.description.failure_timeout_ms = 500;
    let [(member, _), (second, gate), (third, _)] = group.start_all([0, 1, 2]);
    let closed = gate.close();
    assert_eq!(member.propose(SumCommand::Add(1)).wait(PATIENCE), Ok((1, 1)));
    gate.await_waiting();
    let outcomes = outcomes(propose(&member, 40), || drop(third));
    assert_ended(&outcomes, &member, |why| matches!(why, Stopped::Halted { .. }));
    drop((closed, second));
}

#[test]
fn panic_in_apply_ends_member_and_answers() {
    let group = SumGroup::of(2);
    let [(member, _), (other, _)] = group.start_all([0, 1]);
    assert_eq!(member.propose(SumCommand::Add(1)).wait(PATIENCE), Ok((1, 1)));
    let mut proposals = vec![member.propose(SumCommand::Panic)];
    proposals.extend(propose(&member, 40));
    let is_told = |why: &Stopped| matches!(why, Stopped::Panicked(text) if text == "told to");
    let outcomes = outcomes(proposals, || {});
    let panicked = &outcomes[0];
    assert!(matches!(panicked, Err(NotAnswered::Unknown(why)) if is_told(why)), "{panicked:?}");
    assert_ended(&outcomes, &member, is_told);
    await_that("the other member applies it too", || other.stopped().is_some());
    other.propose(SumCommand::Add(1)).wait(PATIENCE).expect_err("it has ended");
}

/// Another member sends bytes that cannot be decoded.
#[test]
fn undecodable_command_ends_member_with_one_line() {
    let group = SumGroup::of(2);
    let (running, (member, _)) = std::thread::scope(|scope| {
        let raw = scope.spawn(|| {
            let application = |_: &mut tramontane::Messages<'_, '_>| {};
            start(group.description.clone(), group.options(1), application).expect("it starts")
        });
        let member = group.start(0).expect("it starts");
        (raw.join().expect("no panic"), member)
    });
    assert_eq!(member.propose(SumCommand::Add(1)).wait(PATIENCE), Ok((1, 1)));
    let mut sender = running.sender().expect("it sends");
    sender.send(&[200, 1, 2, 3], PATIENCE).expect("it is sent");
    await_that("the member ends", || member.stopped().is_some());
    let why = member.stopped().expect("it has ended").to_string();
    assert_eq!(
        why,
        "the application ended this member: node 1 sent a command that this program cannot read, \
         because its format is 200, and this program knows 2; run the same version of the program \
         at all members"
    );
    member.propose(SumCommand::Add(1)).wait(PATIENCE).expect_err("it has ended");
}

/// With fixed membership, the first member that ends takes the others with it.
#[test]
fn lost_peer_of_fixed_group_answers_all_proposals() {
    let mut group = SumGroup::of(2);
    group.description.membership = tramontane::Membership::Fixed;
    let [(member, _), (other, gate)] = group.start_all([0, 1]);
    let closed = gate.close();
    assert_eq!(member.propose(SumCommand::Add(1)).wait(PATIENCE), Ok((1, 1)));
    gate.await_waiting();
    let outcomes = outcomes(propose(&member, 40), || {
        let (closes, is_closing) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                closes.send(()).expect("the test waits");
                other.close()
            });
            is_closing.recv().expect("it closes");
            std::thread::sleep(Duration::from_millis(20));
            drop(closed);
        });
    });
    // The other member may have received some of them before it ended.
    let rest = outcomes.iter().skip_while(|outcome| outcome.is_ok()).cloned();
    let rest: Vec<_> = rest.collect();
    assert_ended(&rest, &member, |why| matches!(why, Stopped::PeerLost { .. }));
}

#[test]
fn node_outside_group_does_not_start() {
    let group = SumGroup::of(2);
    let error = group.start(7).expect_err("it is not in the group");
    assert!(matches!(error, NotStarted::Start(StartError::UnknownNode { node: 7, .. })), "{error}");
}
