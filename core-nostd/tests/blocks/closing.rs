//! A member that has told the root that it has every message depends only on the root (RDM-6). A
//! member that leaves because the group is closed must not make the group fail for another member
//! that reads its cells later.

use super::member::*;
use tramontane_core::fabric::{BlockEvent, LossCause};
use tramontane_core::ids::Rank;
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{BlockGroup, Cause, Failure, Outcome};

/// Indexes of cells in a member's line.
const FAILED: usize = 1;
const CLOSING: usize = 2;
const CLOSED: usize = 3;

const LEFT: Cause = Cause::Lost(LossCause::Left);

/// Returns the cell with which a member publishes that another member left: the lowest bit, the
/// cause, the rank.
fn told_left(member: Rank) -> u64 {
    1 | (2 << 8) | (u64::from(member.0) << 16)
}

fn failed(member: Rank, cause: Cause) -> Option<Outcome> {
    Some(Outcome::Failed(Failure { member, cause }))
}

/// A step of a member.
type MemberStep<'s> = dyn FnMut(&mut BlockGroup<'_>) + 's;

/// Runs a test on a member that has confirmed the close of a group without messages; the test can
/// publish its peers' cells.
fn confirmed(test: impl Fn(&mut BlockGroup<'_>, &mut MemberStep<'_>, &dyn Fn(Rank, usize, u64))) {
    let mut rows = <[[u64; 4]; 4]>::default();
    rows[0][CLOSING] = 1;
    with_peers(Algorithm::Chain, rows, |mut group, fabric, messages, say| {
        group.step(fabric, messages);
        assert_eq!(group.outcome(), None, "the root has not decided");
        let mut step = |group: &mut BlockGroup<'_>| {
            group.step(fabric, messages);
        };
        test(&mut group, &mut step, say);
    });
}

#[test]
fn visible_close_takes_precedence_over_a_loss_report() {
    for peer in [ROOT, OTHER] {
        confirmed(|group, step, say| {
            say(ROOT, CLOSED, 1);
            group.lost(VIEW, peer, LossCause::Left);
            step(group);
            assert_eq!(group.outcome(), Some(Outcome::Closed), "{peer} left");
        });
        confirmed(|group, step, say| {
            say(ROOT, CLOSED, 1);
            say(Rank(3), FAILED, told_left(peer));
            step(group);
            assert_eq!(group.outcome(), Some(Outcome::Closed), "another says that {peer} left");
        });
    }
}

#[test]
fn early_leave_fails_group_only_if_root_agrees() {
    confirmed(|group, step, say| {
        group.lost(VIEW, OTHER, LossCause::Left);
        say(Rank(3), FAILED, told_left(OTHER));
        step(group);
        assert_eq!(group.outcome(), None, "it may have left because it knows of the close");
        say(ROOT, CLOSED, 1);
        step(group);
        assert_eq!(group.outcome(), Some(Outcome::Closed));
    });
    confirmed(|group, step, say| {
        group.lost(VIEW, OTHER, LossCause::Left);
        say(Rank(3), FAILED, told_left(OTHER));
        say(ROOT, FAILED, told_left(OTHER));
        step(group);
        assert_eq!(group.outcome(), failed(OTHER, LEFT), "the root has not closed it");
    });
}

#[test]
fn root_leaving_without_a_close_ends_the_group() {
    confirmed(|group, _, _| {
        group.lost(VIEW, ROOT, LossCause::Left);
        assert_eq!(group.outcome(), failed(ROOT, LEFT));
    });
    confirmed(|group, step, say| {
        say(OTHER, FAILED, told_left(Rank(3)));
        say(Rank(3), FAILED, told_left(ROOT));
        step(group);
        assert_eq!(
            group.outcome(),
            failed(ROOT, LEFT),
            "told by another, and behind one that tells of less"
        );
    });
}

/// A close means nothing to a member that did not confirm it, because it lacks some messages.
#[test]
fn loss_fails_group_despite_an_unconfirmed_close() {
    let mut rows = <[[u64; 4]; 4]>::default();
    (rows[0][CLOSING], rows[0][CLOSED]) = (2, 1);
    with_member(Algorithm::Chain, rows, |mut group, fabric, messages| {
        group.step(fabric, messages);
        group.lost(VIEW, OTHER, LossCause::Left);
        assert_eq!(group.outcome(), failed(OTHER, LEFT));
    });
}

/// A member that confirmed already has every message.
#[test]
fn message_sent_after_close_is_refused() {
    let mut rows = <[[u64; 4]; 4]>::default();
    rows[0][CLOSING] = 1;
    with_member(Algorithm::Chain, rows, |mut group, fabric, messages| {
        group.step(fabric, messages);
        let token = fabric.receives[0].1;
        group.take(
            &BlockEvent::Received { way: way(ROOT), token, immediate: 5, length: BLOCK },
            messages,
        );
        assert_eq!(group.outcome(), failed(ROOT, Cause::Lost(LossCause::Misbehaved)));
    });
}
