//! A member of a block group of four, over a fabric that accepts everything. The tests play the
//! peers.

use crate::common::{Carries, fabric};
use tramontane_core::check::Checks;
use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Capabilities, Channel, ErrorKind, Promises, Region,
    Token, ViewMemory, Way, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{BlockGroup, MessageMemory, Setup, Window, words_for};

pub const VIEW: ViewId = ViewId(3);
pub const CHANNEL: Channel = Channel(7);
pub const BLOCK: usize = 100;
pub const BLOCKS_MAX: u32 = 256;
pub const ROOT: Rank = Rank(0);
pub const OTHER: Rank = Rank(2);

/// A fabric that accepts everything and records the tokens of its receives.
pub struct Willing {
    pub promises: Promises,
    pub receives: Vec<(Rank, Token)>,
    pub sends: usize,
    pub closes: usize,
    /// The error with which posts are refused, or `None` if they are accepted.
    pub refuses: Option<ErrorKind>,
    /// A peer that is not ready yet.
    pub absent: Option<Rank>,
    /// The peers to which something was posted.
    pub posts: Vec<Rank>,
    /// The immediate numbers of the blocks sent.
    pub numbers: Vec<u32>,
    /// Size in bytes of block memory; every post must be inside it.
    pub memory_bytes: usize,
}

impl Willing {
    pub const fn new(promises: Promises) -> Self {
        Self {
            promises,
            receives: Vec::new(),
            sends: 0,
            closes: 0,
            refuses: None,
            absent: None,
            posts: Vec::new(),
            numbers: Vec::new(),
            memory_bytes: MEMORY_BYTES,
        }
    }
}

impl Carries for Willing {
    fn limits(&self) -> Capabilities {
        let promises = self.promises;
        Capabilities {
            promises,
            writes_max: 16,
            write_bytes_max: 1 << 20,
            guard_bytes_max: 24,
            write_overhead_bytes: 24,
        }
    }

    fn is_ready(&self, peer: Rank) -> bool {
        self.absent != Some(peer)
    }

    fn carry(&mut self, to: Rank, _: &[Write]) -> Result<(), ErrorKind> {
        self.posts.push(to);
        self.refuses.map_or(Ok(()), Err)
    }
}

fabric!(Willing);

impl Blocks for Willing {
    fn block_limits(&self) -> BlockLimits {
        BlockLimits { channels: 8, receives_max: 16, sends_max: 12, bytes_max: 1 << 20 }
    }

    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        assert!(into.offset + length <= self.memory_bytes, "a receive outside the memory");
        self.receives.push((from.peer, token));
        Ok(())
    }

    fn send(
        &mut self,
        _: Way,
        from: Area,
        length: usize,
        number: u32,
        _: Token,
    ) -> Result<(), ErrorKind> {
        assert!(from.offset + length <= self.memory_bytes, "a send from outside the memory");
        self.sends += 1;
        self.numbers.push(number);
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

pub const fn way(peer: Rank) -> Way {
    Way { view: VIEW, channel: CHANNEL, peer }
}

/// The staging block, followed by the largest message.
pub const MEMORY_BYTES: usize = BLOCK * (1 + BLOCKS_MAX as usize);

#[derive(Default)]
pub struct Messages {
    pub completed: Vec<usize>,
}

impl MessageMemory for Messages {
    fn incoming(&mut self, _: u64, bytes: usize) -> Option<Area> {
        (bytes <= MEMORY_BYTES - BLOCK).then_some(area(BLOCK))
    }

    fn place(&mut self, from: Area, to: Area, length: usize) {
        assert!(length > 0, "there is nothing to place");
        assert!(from.offset + length <= BLOCK && to.offset + length <= MEMORY_BYTES);
    }

    fn completed(&mut self, _: u64, bytes: usize) {
        self.completed.push(bytes);
    }
}

pub fn area(offset: usize) -> Area {
    Area { region: Region(1), offset }
}

/// Opens a group of four as its second member; `rows` holds the cells of the other members.
pub fn with_member(
    algorithm: Algorithm,
    rows: [[u64; 4]; 4],
    test: impl FnOnce(BlockGroup<'_>, &mut Willing, &mut Messages),
) {
    with_peers(algorithm, rows, |group, fabric, messages, _| test(group, fabric, messages));
}

/// Runs a test like `with_member`, and lets it publish a peer's cell, given the peer's rank and the
/// index in its line.
pub fn with_peers(
    algorithm: Algorithm,
    rows: [[u64; 4]; 4],
    test: impl FnOnce(BlockGroup<'_>, &mut Willing, &mut Messages, &dyn Fn(Rank, usize, u64)),
) {
    with_checks(Checks::Off, algorithm, rows, test);
}

/// Runs a test like `with_peers`, with or without checks of cells.
pub fn with_checks(
    checks: Checks,
    algorithm: Algorithm,
    rows: [[u64; 4]; 4],
    test: impl FnOnce(BlockGroup<'_>, &mut Willing, &mut Messages, &dyn Fn(Rank, usize, u64)),
) {
    with_own(Rank(1), checks, algorithm, rows, test);
}

/// Runs a test like `with_checks`, as any of the four members.
pub fn with_own(
    own: Rank,
    checks: Checks,
    algorithm: Algorithm,
    rows: [[u64; 4]; 4],
    test: impl FnOnce(BlockGroup<'_>, &mut Willing, &mut Messages, &dyn Fn(Rank, usize, u64)),
) {
    let lines: [[Line; 1]; 4] = Default::default();
    let members = [NodeId(1), NodeId(2), NodeId(3), NodeId(4)];
    let ranks = [Rank(0), Rank(1), Rank(2), Rank(3)];
    let seen: Vec<Row<'_>> = lines.iter().map(|lines| Row::from_lines(lines)).collect();
    let say = |rank: Rank, place: usize, value| {
        RowWriter::from_lines(&lines[rank.index()]).cell(place * 8).expect("inside").publish(value);
    };
    for (rank, cells) in ranks.into_iter().zip(rows) {
        cells.into_iter().enumerate().for_each(|(place, value)| say(rank, place, value));
    }
    let row = RowWriter::from_lines(&lines[own.index()]);
    let memory = ViewMemory { own, members: &members, row, rows: &seen };
    let mut words = vec![0; words_for(BLOCKS_MAX)];
    let mut fabric = Willing::new(Promises::WRITE_ORDER);
    let setup = Setup { checks, ..setup(&ranks, algorithm) };
    let group = BlockGroup::open(setup, &memory, &fabric, &mut words).expect("a group");
    test(group, &mut fabric, &mut Messages::default(), &say);
}

pub fn setup(ranks: &[Rank], algorithm: Algorithm) -> Setup<'_> {
    Setup {
        view: VIEW,
        channel: CHANNEL,
        members: ranks,
        algorithm,
        block_bytes: BLOCK,
        cells: 0,
        staging: area(0),
        window: Window::default(),
        checks: Checks::Off,
    }
}
