//! What a peer can do to a block group: end it, and nothing else (RDM-4). Seeds are proptest's, printed on failure.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing
)]

use proptest::prelude::*;
use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Capabilities, Channel, ErrorKind, Event, Fabric, LossCause,
    Promises, Region, Token, ViewMemory, Way, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{
    BlockGroup, CELLS_BYTES, Cause, Failure, MessageMemory, OpenError, Outcome, SendError, Setup, Window,
    words_for,
};

const VIEW: ViewId = ViewId(3);
const CHANNEL: Channel = Channel(7);
const BLOCK: usize = 100;
const BLOCKS_MAX: u32 = 256;
const ROOT: Rank = Rank(0);
const OTHER: Rank = Rank(2);

/// Takes everything, and remembers the tokens of its receives.
struct Willing {
    promises: Promises,
    receives: Vec<(Rank, Token)>,
    sends: usize,
    closes: usize,
    /// What posts are refused with, if they are.
    refuses: Option<ErrorKind>,
}

impl Fabric for Willing {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        let promises = self.promises;
        Capabilities { promises, writes_max: 16, write_bytes_max: 1 << 20, guard_bytes_max: 24 }
    }

    fn open(&mut self, _: ViewId, _: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        Ok(())
    }

    fn ready(&self, _: ViewId, _: Rank) -> bool {
        true
    }

    fn cut(&mut self, _: ViewId, _: Rank) {}

    fn retire(&mut self, _: ViewId) -> bool {
        true
    }

    fn post(&mut self, _: ViewId, _: Rank, _: &[Write], _: Option<Token>) -> Result<(), ErrorKind> {
        self.refuses.map_or(Ok(()), Err)
    }

    fn poll(&mut self) -> Option<Event> {
        None
    }

    fn wake(&mut self, _: ViewId, _: Rank) {}

    fn arm(&mut self) -> bool {
        true
    }

    fn disarm(&mut self) {}

    fn observe_barrier(&self) {}
}

impl Blocks for Willing {
    fn block_limits(&self) -> BlockLimits {
        BlockLimits { channels: 8, receives_max: 16, bytes_max: 1 << 20 }
    }

    fn post_receive(&mut self, from: Way, into: Area, length: usize, token: Token) -> Result<(), ErrorKind> {
        assert!(into.offset + length <= MEMORY_BYTES, "a receive outside the memory");
        self.receives.push((from.peer, token));
        Ok(())
    }

    fn send(&mut self, _: Way, from: Area, length: usize, _: u32, _: Token) -> Result<(), ErrorKind> {
        assert!(from.offset + length <= MEMORY_BYTES, "a send from outside the memory");
        self.sends += 1;
        self.refuses.map_or(Ok(()), Err)
    }

    fn close(&mut self, _: ViewId, channel: Channel) {
        assert_eq!(channel, CHANNEL);
        self.closes += 1;
    }

    fn poll_block(&mut self) -> Option<BlockEvent> {
        None
    }
}

const fn way(peer: Rank) -> Way {
    Way { view: VIEW, channel: CHANNEL, peer }
}

/// The staging block, and the largest message behind it.
const MEMORY_BYTES: usize = BLOCK * (1 + BLOCKS_MAX as usize);

#[derive(Default)]
struct Desk {
    completed: Vec<usize>,
}

impl MessageMemory for Desk {
    fn incoming(&mut self, _: u64, bytes: usize) -> Option<Area> {
        (bytes <= MEMORY_BYTES - BLOCK).then_some(area(BLOCK))
    }

    fn place(&mut self, from: Area, to: Area, length: usize) {
        assert!(from.offset + length <= BLOCK && to.offset + length <= MEMORY_BYTES);
    }

    fn completed(&mut self, _: u64, bytes: usize) {
        self.completed.push(bytes);
    }
}

fn area(offset: usize) -> Area {
    Area { region: Region(1), offset }
}

/// A group of four in which we are the second, with what the others say of themselves in `rows`.
fn with_member(
    algorithm: Algorithm,
    rows: [[u64; 4]; 4],
    test: impl FnOnce(BlockGroup<'_>, &mut Willing, &mut Desk),
) {
    let lines: [[Line; 1]; 4] = Default::default();
    let members = [NodeId(1), NodeId(2), NodeId(3), NodeId(4)];
    let ranks = [Rank(0), Rank(1), Rank(2), Rank(3)];
    let seen: Vec<Row<'_>> = lines.iter().map(|lines| Row::from_lines(lines)).collect();
    for (lines, cells) in lines.iter().zip(rows) {
        for (index, value) in cells.into_iter().enumerate() {
            RowWriter::from_lines(lines).cell(index * 8).expect("inside").publish(value);
        }
    }
    let row = RowWriter::from_lines(&lines[1]);
    let memory = ViewMemory { own: Rank(1), members: &members, row, rows: &seen };
    let mut words = vec![0; words_for(BLOCKS_MAX)];
    let mut fabric =
        Willing { promises: Promises::WRITE_ORDER, receives: Vec::new(), sends: 0, closes: 0, refuses: None };
    let group = BlockGroup::open(setup(&ranks, algorithm), &memory, &fabric, &mut words).expect("a group");
    test(group, &mut fabric, &mut Desk::default());
}

fn setup(ranks: &[Rank], algorithm: Algorithm) -> Setup<'_> {
    Setup {
        view: VIEW,
        channel: CHANNEL,
        members: ranks,
        algorithm,
        block_bytes: BLOCK,
        cells: 0,
        staging: area(0),
        window: Window::default(),
    }
}

fn misbehaved(member: Rank) -> Option<Outcome> {
    Some(Outcome::Failed(Failure { member, cause: Cause::Lost(LossCause::Misbehaved) }))
}

/// What the first block of a message may not be.
#[test]
fn a_first_block_that_cannot_be_ends_the_group() {
    let cases = [
        ("no blocks", ROOT, 0, BLOCK),
        ("fewer blocks than a pipeline has", ROOT, 1, BLOCK),
        ("more blocks than there is memory for", ROOT, BLOCKS_MAX + 1, BLOCK),
        ("as many as can be counted", ROOT, u32::MAX, BLOCK),
        ("short", ROOT, 9, BLOCK - 1),
        ("from another", OTHER, 9, BLOCK),
    ];
    for (what, peer, immediate, length) in cases {
        with_member(Algorithm::Pipeline, Default::default(), |mut group, fabric, desk| {
            group.step(fabric, desk);
            let token = fabric.receives[0].1;
            assert!(group.take(&BlockEvent::Received { way: way(peer), token, immediate, length }, desk));
            assert_eq!(group.outcome(), misbehaved(peer), "{what}");
        });
    }
}

/// What a later block may not be. The second member of a chain has all from the root, in order.
#[test]
fn a_later_block_that_is_not_as_planned_ends_the_group() {
    let cases = [
        ("another's", OTHER, 1, BLOCK),
        ("of another place", ROOT, 2, BLOCK),
        ("short", ROOT, 1, BLOCK - 1),
        ("empty", ROOT, 1, 0),
    ];
    for (what, peer, immediate, length) in cases {
        with_member(Algorithm::Chain, Default::default(), |mut group, fabric, desk| {
            group.step(fabric, desk);
            let first = fabric.receives[0].1;
            let begun = BlockEvent::Received { way: way(ROOT), token: first, immediate: 5, length: BLOCK };
            assert!(group.take(&begun, desk));
            group.step(fabric, desk);
            let token = fabric.receives[1].1;
            assert!(group.take(&BlockEvent::Received { way: way(peer), token, immediate, length }, desk));
            assert_eq!(group.outcome(), misbehaved(peer), "{what}");
        });
    }
}

#[test]
fn a_block_that_comes_twice_ends_the_group() {
    with_member(Algorithm::Chain, Default::default(), |mut group, fabric, desk| {
        group.step(fabric, desk);
        let received =
            |token, immediate| BlockEvent::Received { way: way(ROOT), token, immediate, length: BLOCK };
        group.take(&received(fabric.receives[0].1, 5), desk);
        group.step(fabric, desk);
        let again = received(fabric.receives[1].1, 1);
        group.take(&again, desk);
        assert_eq!(group.outcome(), None);
        group.take(&again, desk);
        assert_eq!(group.outcome(), misbehaved(ROOT));
    });
}

#[test]
fn another_groups_blocks_are_left_to_it() {
    with_member(Algorithm::Chain, Default::default(), |mut group, _, desk| {
        let others = [Way { channel: Channel(6), ..way(ROOT) }, Way { view: ViewId(4), ..way(ROOT) }];
        for way in others {
            assert!(!group.take(&BlockEvent::Sent { way, token: Token(0) }, desk));
        }
        group.lost(ViewId(4), ROOT, LossCause::Left);
        assert_eq!(group.outcome(), None, "another view's loss");
        group.lost(VIEW, OTHER, LossCause::Left);
        let cause = Cause::Lost(LossCause::Left);
        assert_eq!(group.outcome(), Some(Outcome::Failed(Failure { member: OTHER, cause })));
        assert_eq!(group.send(area(BLOCK), 5), Err(SendError::NotRoot));
    });
}

/// Who revoked this member's right has taken it for dead, and is not this member's fault; nor is it a fault to whoever hears of
/// it: to the others the one that was denied is gone.
#[test]
fn a_peer_that_denies_a_post_ends_the_group_and_is_not_accused_by_others() {
    let denied = |member| Some(Outcome::Failed(Failure { member, cause: Cause::Lost(LossCause::Denied) }));
    with_member(Algorithm::Chain, Default::default(), |mut group, fabric, desk| {
        fabric.refuses = Some(ErrorKind::Revoked);
        group.step(fabric, desk);
        assert_eq!(group.outcome(), denied(ROOT));
    });
    // Member 3 says in its second cell that the root denied it: the lowest bit, the cause, the rank.
    let mut rows = <[[u64; 4]; 4]>::default();
    rows[3][1] = 1 | (4 << 8);
    with_member(Algorithm::Chain, rows, |mut group, fabric, desk| {
        group.step(fabric, desk);
        let cause = Cause::Lost(LossCause::Unreachable);
        assert_eq!(group.outcome(), Some(Outcome::Failed(Failure { member: Rank(3), cause })));
    });
}

#[test]
fn groups_that_cannot_be_are_refused() {
    let lines: [[Line; 1]; 2] = Default::default();
    let rows = [Row::from_lines(&lines[0]), Row::from_lines(&lines[1])];
    let nodes = [NodeId(1), NodeId(2)];
    let memory =
        ViewMemory { own: ROOT, members: &nodes, row: RowWriter::from_lines(&lines[0]), rows: &rows };
    let both = [Rank(0), Rank(1)];
    let good = setup(&both, Algorithm::Pipeline);
    let open = |setup: Setup<'_>, promises, words: &mut [u64]| {
        let fabric = Willing { promises, receives: Vec::new(), sends: 0, closes: 0, refuses: None };
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
    assert_eq!(wrong(Setup { block_bytes: 2 << 20, ..good }), Some(OpenError::BlockBytes));
    assert_eq!(wrong(Setup { cells: 8, ..good }), Some(OpenError::Cells));
    assert_eq!(wrong(Setup { cells: CELLS_BYTES, ..good }), Some(OpenError::Cells));
    assert_eq!(wrong(Setup { window: Window { receives: 0, sends: 1 }, ..good }), Some(OpenError::Window));
    assert_eq!(wrong(Setup { window: Window { receives: 17, sends: 1 }, ..good }), Some(OpenError::Window));
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

/// An event that a fabric could report: mostly of receives that were posted, with numbers near the right ones.
type Said = (bool, u16, u8, u32, usize);

fn said() -> impl Strategy<Value = Said> {
    let number = prop_oneof![0..12_u32, any::<u32>()];
    let length = prop_oneof![Just(BLOCK), 0..=BLOCK, any::<usize>()];
    (any::<bool>(), 0..5_u16, any::<u8>(), number, length)
}

proptest! {
    /// Nothing that is said moves a post outside the memory, or panics; and a group that ended stays so.
    #[test]
    fn no_peer_can_do_more_than_end_the_group(
        algorithm in algorithm(),
        cells in any::<[[u64; 4]; 4]>(),
        is_quiet in prop::bool::weighted(0.8),
        events in prop::collection::vec(said(), 0..60),
    ) {
        let mut cells = cells;
        if is_quiet {
            // Nobody says that the group failed or closes: what is tried is tried for longer.
            cells.iter_mut().for_each(|cells| cells[1..].fill(0));
        }
        with_member(algorithm, cells, |mut group, fabric, desk| {
            let mut ended = None;
            for (is_sent, peer, which, immediate, length) in events {
                group.step(fabric, desk);
                let posted = fabric.receives.get(usize::from(which) % fabric.receives.len().max(1));
                let (from, token) = posted.copied().unwrap_or((Rank(peer), Token(0)));
                let peer = if which < 200 { from } else { Rank(peer) };
                let event = if is_sent {
                    BlockEvent::Sent { way: way(peer), token }
                } else {
                    BlockEvent::Received { way: way(peer), token, immediate, length }
                };
                group.take(&event, desk);
                if ended.is_some() {
                    assert_eq!(group.outcome(), ended, "a group ends once");
                }
                ended = group.outcome();
            }
            assert!(fabric.receives.len() <= 70 * BLOCKS_MAX as usize);
            group.step(fabric, desk);
            group.step(fabric, desk);
            assert_eq!(fabric.closes, usize::from(group.outcome().is_some()), "a channel is closed once, at the end");
        });
    }
}
