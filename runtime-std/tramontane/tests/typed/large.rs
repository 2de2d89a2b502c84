//! Commands that do not fit into a slot.

use tramontane::NotAnswered;

use crate::support::{PATIENCE, SumCommand, SumGroup};

fn text(bytes: usize) -> SumCommand {
    SumCommand::Text("x".repeat(bytes))
}

#[test]
fn large_commands_keep_their_order_among_small_ones() {
    let mut group = SumGroup::of(2);
    group.description.subgroups[0].large_max = 1 << 20;
    let [(first, _), (second, _)] = group.start_all([0, 1]);
    let lengths = [10, 100_000, 20, 5, 300_000, 1_000_000, 7, 1];
    let proposals: Vec<_> = lengths.iter().map(|bytes| first.propose(text(*bytes))).collect();
    let mut sum = 0;
    for ((number, bytes), proposal) in (1..).zip(lengths).zip(proposals) {
        sum += bytes as u64;
        assert_eq!(proposal.wait(PATIENCE), Ok((number, sum)));
    }
    assert_eq!(second.query_linearizable(|ledger| ledger.sum).wait(PATIENCE), Ok(sum));
    let refused = first.propose(text(2 << 20)).wait(PATIENCE);
    assert!(
        matches!(refused, Err(NotAnswered::TooLarge { limit, .. }) if limit == 1 << 20),
        "{refused:?}"
    );
}

#[test]
fn command_above_the_limit_is_refused_with_sizes() {
    let group = SumGroup::of(1);
    let [(member, _)] = group.start_all([0]);
    let refused = member.propose(text(100)).wait(PATIENCE).expect_err("a slot has 64 bytes");
    assert_eq!(
        refused.to_string(),
        "a command of 111 bytes exceeds the limit of 64; propose smaller commands, raise \
         message_max, or allow large messages with large_max"
    );
    assert_eq!(member.propose(text(3)).wait(PATIENCE), Ok((1, 3)), "nothing else was affected");
}

#[test]
fn closed_member_answers_large_proposals() {
    let mut group = SumGroup::of(2);
    group.description.subgroups[0].large_max = 1 << 20;
    // The other member is not removed while its application waits at the gate.
    group.description.failure_timeout_ms = 60_000;
    let [(member, _), (_other, gate)] = group.start_all([0, 1]);
    let closed = gate.close();
    assert_eq!(member.propose(text(1)).wait(PATIENCE), Ok((1, 1)));
    gate.await_waiting();
    let proposals = (0..6).map(|_| member.propose(text(500_000))).collect();
    let outcomes = crate::support::outcomes(proposals, || drop(member.close()));
    for outcome in outcomes {
        assert!(
            matches!(outcome, Err(NotAnswered::Unknown(_) | NotAnswered::NotSent(_))),
            "{outcome:?}"
        );
    }
    drop(closed);
}
