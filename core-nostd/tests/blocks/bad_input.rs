//! A peer's input can end a block group, but can do nothing else (RDM-4). proptest prints its seed
//! on failure.

use super::member::*;
use proptest::prelude::*;
use tramontane_core::fabric::{
    BlockEvent, Channel, ErrorKind, LossCause, Promises, Token, ViewMemory, Way,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{
    BlockGroup, CELLS_BYTES, Cause, Failure, OpenError, Outcome, SendError, Setup, Window,
};

fn misbehaved(member: Rank) -> Option<Outcome> {
    Some(Outcome::Failed(Failure { member, cause: Cause::Lost(LossCause::Misbehaved) }))
}

/// Impossible first blocks of a message.
#[test]
fn invalid_first_block_ends_the_group() {
    let cases = [
        ("no blocks", ROOT, 0, BLOCK),
        ("fewer blocks than a pipeline has", ROOT, 1, BLOCK),
        ("more blocks than there is memory for", ROOT, BLOCKS_MAX + 1, BLOCK),
        ("as many as can be counted", ROOT, u32::MAX, BLOCK),
        ("short", ROOT, 9, BLOCK - 1),
        ("from another", OTHER, 9, BLOCK),
    ];
    for (what, peer, immediate, length) in cases {
        with_member(Algorithm::Pipeline, Default::default(), |mut group, fabric, messages| {
            group.step(fabric, messages);
            let token = fabric.receives[0].1;
            assert!(group.take(
                &BlockEvent::Received { way: way(peer), token, immediate, length },
                messages
            ));
            assert_eq!(group.outcome(), misbehaved(peer), "{what}");
        });
    }
}

/// Impossible later blocks. The second member of a chain receives all blocks from the root, in
/// order.
#[test]
fn unplanned_later_block_ends_the_group() {
    let cases = [
        ("another's", OTHER, 1, BLOCK),
        ("of another place", ROOT, 2, BLOCK),
        ("short", ROOT, 1, BLOCK - 1),
        ("empty", ROOT, 1, 0),
    ];
    for (what, peer, immediate, length) in cases {
        with_member(Algorithm::Chain, Default::default(), |mut group, fabric, messages| {
            group.step(fabric, messages);
            let first = fabric.receives[0].1;
            let begun =
                BlockEvent::Received { way: way(ROOT), token: first, immediate: 5, length: BLOCK };
            assert!(group.take(&begun, messages));
            group.step(fabric, messages);
            let token = fabric.receives[1].1;
            assert!(group.take(
                &BlockEvent::Received { way: way(peer), token, immediate, length },
                messages
            ));
            assert_eq!(group.outcome(), misbehaved(peer), "{what}");
        });
    }
}

#[test]
fn duplicate_block_ends_the_group() {
    with_member(Algorithm::Chain, Default::default(), |mut group, fabric, messages| {
        group.step(fabric, messages);
        let received = |token, immediate| BlockEvent::Received {
            way: way(ROOT),
            token,
            immediate,
            length: BLOCK,
        };
        group.take(&received(fabric.receives[0].1, 5), messages);
        group.step(fabric, messages);
        let again = received(fabric.receives[1].1, 1);
        group.take(&again, messages);
        assert_eq!(group.outcome(), None);
        group.take(&again, messages);
        assert_eq!(group.outcome(), misbehaved(ROOT));
    });
}

#[test]
fn events_of_another_group_are_ignored() {
    with_member(Algorithm::Chain, Default::default(), |mut group, _, messages| {
        let others =
            [Way { channel: Channel(6), ..way(ROOT) }, Way { view: ViewId(4), ..way(ROOT) }];
        for way in others {
            assert!(!group.take(&BlockEvent::Sent { way, token: Token(0) }, messages));
        }
        group.lost(ViewId(4), ROOT, LossCause::Left);
        assert_eq!(group.outcome(), None, "another view's loss");
        group.lost(VIEW, Rank(99), LossCause::Left);
        assert_eq!(group.outcome(), None, "no member's loss");
        group.lost(VIEW, OTHER, LossCause::Left);
        let cause = Cause::Lost(LossCause::Left);
        assert_eq!(group.outcome(), Some(Outcome::Failed(Failure { member: OTHER, cause })));
        assert_eq!(group.send(area(BLOCK), 5), Err(SendError::NotRoot));
    });
}

/// A peer that revoked this member's permission suspected this member but has not failed. The other
/// members do not blame that peer either; they report the denied member as unreachable.
#[test]
fn denied_post_ends_group_without_blaming_a_peer() {
    let denied =
        |member| Some(Outcome::Failed(Failure { member, cause: Cause::Lost(LossCause::Denied) }));
    with_member(Algorithm::Chain, Default::default(), |mut group, fabric, messages| {
        fabric.refuses = Some(ErrorKind::Revoked);
        group.step(fabric, messages);
        assert_eq!(group.outcome(), denied(ROOT));
    });
    // Member 3's second cell says that the root denied its post: the lowest bit, the cause, the
    // rank.
    let mut rows = <[[u64; 4]; 4]>::default();
    rows[3][1] = 1 | (4 << 8);
    with_member(Algorithm::Chain, rows, |mut group, fabric, messages| {
        group.step(fabric, messages);
        let cause = Cause::Lost(LossCause::Unreachable);
        assert_eq!(group.outcome(), Some(Outcome::Failed(Failure { member: Rank(3), cause })));
    });
}

#[test]
fn invalid_groups_are_refused() {
    let lines: [[Line; 1]; 2] = Default::default();
    let rows = [Row::from_lines(&lines[0]), Row::from_lines(&lines[1])];
    let nodes = [NodeId(1), NodeId(2)];
    let memory = ViewMemory {
        own: ROOT,
        members: &nodes,
        row: RowWriter::from_lines(&lines[0]),
        rows: &rows,
    };
    let both = [Rank(0), Rank(1)];
    let good = setup(&both, Algorithm::Pipeline);
    let open = |setup: Setup<'_>, promises, words: &mut [u64]| {
        let fabric = Willing::new(promises);
        let opened = BlockGroup::open(setup, &memory, &fabric, words).map(|_| ());
        opened.err()
    };
    let ordered = Promises::WRITE_ORDER;
    assert_eq!(open(good, ordered, &mut [0]), None);
    assert_eq!(open(good, ordered, &mut []), Some(OpenError::NoWords));
    assert_eq!(open(good, Promises::COMPLETION_VISIBLE, &mut [0]), Some(OpenError::Unordered));
    let wrong = |setup| open(setup, ordered, &mut [0]);
    assert_eq!(wrong(Setup { members: &[], ..good }), Some(OpenError::Members));
    assert_eq!(wrong(Setup { members: &[Rank(0), Rank(0)], ..good }), Some(OpenError::Members));
    assert_eq!(wrong(Setup { members: &[Rank(0), Rank(2)], ..good }), Some(OpenError::Members));
    assert_eq!(wrong(Setup { members: &[Rank(1)], ..good }), Some(OpenError::NotMember));
    assert_eq!(wrong(Setup { block_bytes: 0, ..good }), Some(OpenError::BlockBytes));
    assert_eq!(wrong(Setup { block_bytes: 1 << 20, ..good }), None, "as long as may be");
    assert_eq!(wrong(Setup { block_bytes: (1 << 20) + 1, ..good }), Some(OpenError::BlockBytes));
    assert_eq!(wrong(Setup { cells: 8, ..good }), Some(OpenError::Cells));
    assert_eq!(wrong(Setup { cells: CELLS_BYTES, ..good }), Some(OpenError::Cells));
    assert_eq!(
        wrong(Setup { window: Window { receives: 0, sends: 1 }, ..good }),
        Some(OpenError::Window)
    );
    assert_eq!(
        wrong(Setup { window: Window { receives: 17, sends: 1 }, ..good }),
        Some(OpenError::Window)
    );
    assert_eq!(
        wrong(Setup { window: Window { receives: 1, sends: 0 }, ..good }),
        Some(OpenError::Window)
    );
    assert_eq!(wrong(Setup { window: Window { receives: 16, sends: 12 }, ..good }), None);
    assert_eq!(
        wrong(Setup { window: Window { receives: 1, sends: 13 }, ..good }),
        Some(OpenError::Window)
    );
    assert_eq!(wrong(Setup { channel: Channel(8), ..good }), Some(OpenError::Channel));
    let racks = std::num::NonZeroU16::new(3).expect("three");
    assert_eq!(wrong(setup(&both, Algorithm::Hybrid { racks })), Some(OpenError::Schedule));
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(vec![
        Algorithm::Sequential,
        Algorithm::Interleaved,
        Algorithm::Chain,
        Algorithm::Tree,
        Algorithm::Pipeline,
    ])
}

/// An event that a fabric could report, usually about a posted receive and with plausible numbers.
type ReportedEvent = (bool, u16, u8, u32, usize);

fn said() -> impl Strategy<Value = ReportedEvent> {
    let number = prop_oneof![0..12_u32, any::<u32>()];
    let length = prop_oneof![Just(BLOCK), 0..=BLOCK, any::<usize>()];
    (any::<bool>(), 0..5_u16, any::<u8>(), number, length)
}

proptest! {
    /// No event moves a post outside the memory or causes a panic, and an ended group stays ended.
    #[test]
    fn hostile_peers_can_only_end_the_group(
        algorithm in algorithm(),
        cells in any::<[[u64; 4]; 4]>(),
        is_quiet in prop::bool::weighted(0.8),
        events in prop::collection::vec(said(), 0..60),
    ) {
        let mut cells = cells;
        if is_quiet {
            // No member says that the group failed or closes, so that the run lasts longer.
            cells.iter_mut().for_each(|cells| cells[1..].fill(0));
        }
        with_member(algorithm, cells, |mut group, fabric, messages| {
            let mut ended = None;
            for (is_sent, peer, which, immediate, length) in events {
                group.step(fabric, messages);
                let posted = fabric.receives.get(usize::from(which) % fabric.receives.len().max(1));
                let (from, token) = posted.copied().unwrap_or((Rank(peer), Token(0)));
                let peer = if which < 200 { from } else { Rank(peer) };
                let event = if is_sent {
                    BlockEvent::Sent { way: way(peer), token }
                } else {
                    BlockEvent::Received { way: way(peer), token, immediate, length }
                };
                group.take(&event, messages);
                if ended.is_some() {
                    assert_eq!(group.outcome(), ended, "a group ends once");
                }
                ended = group.outcome();
            }
            assert!(fabric.receives.len() <= 70 * BLOCKS_MAX as usize);
            group.step(fabric, messages);
            group.step(fabric, messages);
            assert_eq!(fabric.closes, usize::from(group.outcome().is_some()), "a channel is closed once, at the end");
        });
    }
}
