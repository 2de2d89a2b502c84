//! Errors that a root receives when it cannot send or close, and how a root closes a group: it
//! waits for each member's confirmation and checks it.

use super::member::*;
use tramontane_core::check::Checks;
use tramontane_core::fabric::{BlockEvent, ErrorKind, LossCause, Token};
use tramontane_core::ids::Rank;
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{
    BlockGroup, Cause, CloseError, Failure, MessageMemory, Outcome, SendError,
};

/// Indexes of cells in a member's line.
const READY: usize = 0;
const CLOSING: usize = 2;

const MEMBERS: [Rank; 3] = [Rank(1), Rank(2), Rank(3)];

fn failed(member: Rank, cause: LossCause) -> Option<Outcome> {
    Some(Outcome::Failed(Failure { member, cause: Cause::Lost(cause) }))
}

/// Opens the root of a chain of four, and lets the test publish its members' cells.
fn root(
    test: impl FnOnce(&mut BlockGroup<'_>, &mut Willing, &mut Messages, &dyn Fn(Rank, usize, u64)),
) {
    let rows = Default::default();
    with_own(ROOT, Checks::Off, Algorithm::Chain, rows, |mut group, fabric, messages, say| {
        test(&mut group, fabric, messages, say);
    });
}

/// Completes each posted send.
fn all_sent(group: &mut BlockGroup<'_>, fabric: &mut Willing, messages: &mut Messages) {
    for _ in 0..core::mem::take(&mut fabric.sends) {
        group.take(&BlockEvent::Sent { way: way(Rank(1)), token: Token(0) }, messages);
    }
}

#[test]
fn root_sends_one_message_at_a_time() {
    root(|group, fabric, messages, say| {
        assert_eq!((group.view(), group.channel()), (VIEW, CHANNEL));
        assert_eq!(group.send(area(BLOCK), 2 * BLOCK + 1), Ok(()));
        assert_eq!(group.send(area(BLOCK), 1), Err(SendError::Busy));
        assert!(group.is_moving() && group.completed() == 0);
        // The next member in the chain is ready for the whole message.
        say(Rank(1), READY, 100);
        for _ in 0..8 {
            group.step(fabric, messages);
            all_sent(group, fabric, messages);
        }
        assert_eq!(fabric.numbers, [3, 1, 2], "how many, and then their places");
        assert_eq!(messages.completed, [2 * BLOCK + 1]);
        assert!(!group.is_moving() && group.completed() == 1);
        assert_eq!([group.close(), group.close()], [Ok(()), Ok(())]);
        assert_eq!(group.send(area(BLOCK), 1), Err(SendError::Ended));
        group.lost(VIEW, OTHER, LossCause::Left);
        assert_eq!(group.send(area(BLOCK), 1), Err(SendError::Ended));
        assert_eq!(group.close(), Err(CloseError::Ended));
    });
}

#[test]
fn message_with_too_many_blocks_is_refused() {
    root(|group, _, _, _| {
        let blocks = BLOCKS_MAX + 1;
        let refused = group.send(area(BLOCK), BLOCK * blocks as usize);
        assert_eq!(refused, Err(SendError::TooLarge { blocks, blocks_max: BLOCKS_MAX }));
        assert!(!group.is_moving());
    });
    with_member(Algorithm::Chain, Default::default(), |mut group, _, _| {
        assert_eq!(group.close(), Err(CloseError::NotRoot));
    });
}

/// VIE-12: a peer's memory is not accessible before the peer is ready.
#[test]
fn nothing_is_posted_before_all_members_are_ready() {
    root(|group, fabric, messages, say| {
        say(Rank(1), READY, 100);
        group.send(area(BLOCK), BLOCK).expect("between messages");
        fabric.absent = Some(Rank(3));
        assert!(group.step(fabric, messages).is_idle() && fabric.sends == 0);
        fabric.absent = None;
        assert!(!group.step(fabric, messages).is_idle() && fabric.sends == 1);
        fabric.absent = Some(Rank(3));
        all_sent(group, fabric, messages);
        group.step(fabric, messages);
        assert_eq!(group.completed(), 1, "who was ready once is not asked again");
    });
}

#[test]
fn root_closes_once_each_member_confirms() {
    root(|group, fabric, messages, say| {
        group.close().expect("nothing is under way");
        group.step(fabric, messages);
        assert_eq!(fabric.posts, MEMBERS, "each is told how many there were");
        for member in MEMBERS {
            group.step(fabric, messages);
            assert_eq!(group.outcome(), None, "{member} has not confirmed");
            say(member, CLOSING, 1);
        }
        fabric.posts.clear();
        group.step(fabric, messages);
        assert_eq!((group.outcome(), &fabric.posts[..]), (Some(Outcome::Closed), &MEMBERS[..]));
        group.step(fabric, messages);
        assert_eq!(fabric.closes, 1);
    });
}

/// A member's confirmation counts even if the root cannot post at once.
#[test]
fn decided_close_completes_despite_losses_and_full_queues() {
    root(|group, fabric, messages, say| {
        group.close().expect("nothing is under way");
        fabric.refuses = Some(ErrorKind::QueueFull);
        assert!(group.step(fabric, messages).has_more);
        fabric.refuses = None;
        group.step(fabric, messages);
        assert_eq!(fabric.posts, [Rank(1), Rank(1), Rank(2), Rank(3)]);
        MEMBERS.iter().for_each(|member| say(*member, CLOSING, 1));
        fabric.refuses = Some(ErrorKind::QueueFull);
        assert!(group.step(fabric, messages).has_more);
        group.lost(VIEW, OTHER, LossCause::Left);
        assert_eq!(group.outcome(), None);
        // A lost member is skipped.
        fabric.refuses = Some(ErrorKind::PeerLost);
        group.step(fabric, messages);
        assert_eq!(group.outcome(), Some(Outcome::Closed));
    });
}

#[test]
fn confirming_a_wrong_message_count_is_misbehaviour() {
    for said in [2, u64::MAX] {
        root(|group, fabric, messages, say| {
            group.close().expect("nothing is under way");
            MEMBERS.iter().for_each(|member| say(*member, CLOSING, 1));
            say(OTHER, CLOSING, said);
            group.step(fabric, messages);
            assert_eq!(group.outcome(), failed(OTHER, LossCause::Misbehaved));
        });
    }
    // A root that announces fewer messages than have arrived misbehaves too.
    with_peers(Algorithm::Chain, Default::default(), |mut group, fabric, messages, say| {
        group.step(fabric, messages);
        let token = fabric.receives[0].1;
        let whole = BlockEvent::Received { way: way(ROOT), token, immediate: 1, length: BLOCK };
        group.take(&whole, messages);
        say(Rank(2), READY, 100);
        for _ in 0..4 {
            group.step(fabric, messages);
        }
        group.take(&BlockEvent::Sent { way: way(Rank(2)), token: Token(0) }, messages);
        group.step(fabric, messages);
        assert_eq!(group.completed(), 1);
        say(ROOT, CLOSING, 1);
        group.step(fabric, messages);
        assert_eq!(group.outcome(), failed(ROOT, LossCause::Misbehaved));
    });
}

/// A peer is blamed only for its own faults.
#[test]
fn group_outcome_depends_on_the_post_error() {
    let own = Some(Outcome::Failed(Failure { member: Rank(1), cause: Cause::Fabric }));
    let cases = [
        (ErrorKind::QueueFull, None),
        (ErrorKind::PeerLost, failed(ROOT, LossCause::Unreachable)),
        (ErrorKind::OutOfRange, own),
        (ErrorKind::Other, own),
        (ErrorKind::WrongMemory, own),
    ];
    for (kind, outcome) in cases {
        with_member(Algorithm::Chain, Default::default(), |mut group, fabric, messages| {
            fabric.refuses = Some(kind);
            let progress = group.step(fabric, messages);
            assert_eq!(group.outcome(), outcome, "{kind}");
            assert!(progress.has_more, "to try again, or to tell the others");
        });
    }
    // A refused block has the same effects.
    root(|group, fabric, messages, say| {
        say(Rank(1), READY, 100);
        group.send(area(BLOCK), BLOCK).expect("between messages");
        fabric.refuses = Some(ErrorKind::QueueFull);
        assert!(group.step(fabric, messages).has_more && group.outcome().is_none());
        fabric.refuses = Some(ErrorKind::PeerLost);
        group.step(fabric, messages);
        assert_eq!(group.outcome(), failed(Rank(1), LossCause::Unreachable));
    });
}

/// An application without memory for the message.
struct NoRoom;

impl MessageMemory for NoRoom {
    fn incoming(&mut self, _: u64, _: usize) -> Option<tramontane_core::fabric::Area> {
        None
    }
    fn place(
        &mut self,
        _: tramontane_core::fabric::Area,
        _: tramontane_core::fabric::Area,
        _: usize,
    ) {
    }
    fn completed(&mut self, _: u64, _: usize) {}
}

#[test]
fn failed_memory_allocation_ends_the_block_group() {
    with_member(Algorithm::Chain, Default::default(), |mut group, fabric, messages| {
        group.step(fabric, messages);
        let token = fabric.receives[0].1;
        let first = BlockEvent::Received { way: way(ROOT), token, immediate: 3, length: BLOCK };
        group.take(&first, &mut NoRoom);
        let failure = Failure { member: Rank(1), cause: Cause::NoMemory };
        assert_eq!(group.outcome(), Some(Outcome::Failed(failure)));
    });
}

/// RDM-5: the number of blocks in flight never exceeds the window's sends, however many blocks are
/// awaited.
#[test]
fn window_limits_the_blocks_in_flight() {
    root(|group, fabric, messages, say| {
        say(Rank(1), READY, 100);
        group.send(area(BLOCK), 10 * BLOCK).expect("between messages");
        for sent in [2, 3] {
            for _ in 0..10 {
                group.step(fabric, messages);
            }
            assert_eq!(fabric.sends, sent);
            group.take(&BlockEvent::Sent { way: way(Rank(1)), token: Token(0) }, messages);
        }
    });
}

/// RDM-6: a member that learns of a failure announces it to all others.
#[test]
fn member_posts_a_failure_to_all_others_once() {
    root(|group, fabric, messages, _| {
        group.lost(VIEW, OTHER, LossCause::Exited);
        group.step(fabric, messages);
        assert_eq!(fabric.posts, MEMBERS);
        for _ in 0..3 {
            assert!(group.step(fabric, messages).is_idle());
        }
    });
}
