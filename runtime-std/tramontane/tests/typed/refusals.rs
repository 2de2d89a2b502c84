//! Groups that do not suit, and members that refuse.

use tramontane::NotAnswered;
use tramontane::group::SubgroupDescription;
use tramontane::typed::NotStarted;

use crate::support::{PATIENCE, SumCommand, SumGroup, propose};

#[test]
fn unsuitable_groups_are_refused() {
    let mut group = SumGroup::of(2);
    group.description.subgroups[0].unordered = true;
    assert!(matches!(group.start(0), Err(NotStarted::NoOrder(name)) if name == "ledger"));
    group.description.subgroups.push(SubgroupDescription::named("second"));
    assert!(matches!(group.start(0), Err(NotStarted::Subgroups(2))));
    let mut group = SumGroup::of(2);
    group.description.subgroups[0].members = Some(vec![1]);
    assert!(matches!(group.start(0), Err(NotStarted::NotAMember(0))));
}

#[test]
fn non_sender_reads_but_does_not_propose() {
    let mut group = SumGroup::of(2);
    group.description.subgroups[0].senders = Some(vec![0]);
    let [(sender, _), (reader, _)] = group.start_all([0, 1]);
    assert_eq!(sender.propose(SumCommand::Add(3)).wait(PATIENCE), Ok((1, 3)));
    crate::support::await_that("it is applied", || {
        reader.query_local(|ledger| ledger.sum) == Ok(3)
    });
    assert_eq!(reader.propose(SumCommand::Add(1)).wait(PATIENCE), Err(NotAnswered::NotASender));
    let read = reader.query_linearizable(|ledger| ledger.sum).wait(PATIENCE);
    assert_eq!(read, Err(NotAnswered::NotASender));
}

#[test]
fn waiting_commands_are_bounded() {
    let mut group = SumGroup::of(2);
    group.limits.waiting_max = 5;
    let [(member, _), (_other, gate)] = group.start_all([0, 1]);
    let closed = gate.close();
    assert_eq!(member.propose(SumCommand::Add(1)).wait(PATIENCE), Ok((1, 1)));
    gate.await_waiting();
    let proposals = propose(&member, 100);
    drop(closed);
    let outcomes: Vec<_> = proposals.into_iter().map(|proposal| proposal.wait(PATIENCE)).collect();
    let refused =
        |outcome: &&Result<_, _>| **outcome == Err(NotAnswered::Overloaded { waiting: 5 });
    let refused = outcomes.iter().filter(refused).count();
    let answered = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(refused + answered, 100, "{outcomes:?}");
    assert!(refused > 50, "{refused}");
    assert_eq!(
        member.propose(SumCommand::Add(1)).wait(PATIENCE).map(|(number, _)| number),
        Ok(answered as u64 + 2)
    );
}
