//! Whole groups: a root and its members, each with rows and block memory, over a fabric that
//! occasionally refuses posts. A block that was not awaited is an error (RDM-4).

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;
use std::rc::Rc;

use super::member::{BLOCK, BLOCKS_MAX, CHANNEL, VIEW, setup};
use crate::common::{Carries, fabric};
use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Capabilities, Channel, ErrorKind, Promises, Region,
    Token, ViewMemory, Way, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{BlockGroup, MessageMemory, Outcome, words_for};

/// The staging block, followed by the largest message.
const MEMORY_BYTES: usize = BLOCK * (1 + BLOCKS_MAX as usize);

/// A posted receive: the area for its block, the maximum length in bytes, and its token.
type Awaited = (Area, usize, Token);

/// State that the members share.
struct MembersState {
    memory: Vec<Vec<u8>>,
    /// Receives, indexed by receiver and sender.
    receives: BTreeMap<(usize, Rank), VecDeque<Awaited>>,
    events: Vec<VecDeque<BlockEvent>>,
    /// Interval of refused posts: every nth post is refused; zero for none.
    refused_each: u64,
    posts: u64,
}

impl MembersState {
    fn post(&mut self) -> Result<(), ErrorKind> {
        self.posts += 1;
        let is_refused = self.refused_each > 0 && self.posts.is_multiple_of(self.refused_each);
        if is_refused { Err(ErrorKind::QueueFull) } else { Ok(()) }
    }
}

/// One member's fabric.
struct MemberFabric<'r> {
    own: Rank,
    /// Each owner's row, as each reader sees it.
    copies: &'r [Vec<RowWriter<'r>>],
    shared: Rc<RefCell<MembersState>>,
}

impl Carries for MemberFabric<'_> {
    fn limits(&self) -> Capabilities {
        Capabilities {
            promises: Promises::WRITE_ORDER,
            writes_max: 4,
            write_bytes_max: 1 << 20,
            guard_bytes_max: 24,
            write_overhead_bytes: 24,
        }
    }

    fn carry(&mut self, to: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        self.shared.borrow_mut().post()?;
        for write in writes {
            let mut bytes = vec![0; write.length];
            let own = self.copies[self.own.index()][self.own.index()].reader();
            own.read(write.source.offset, &mut bytes).expect("in the row");
            let copy = self.copies[self.own.index()][to.index()];
            copy.apply(write.target.offset, &bytes).expect("in the row");
        }
        Ok(())
    }
}

fabric!(MemberFabric<'_>);

impl Blocks for MemberFabric<'_> {
    fn block_limits(&self) -> BlockLimits {
        BlockLimits { channels: 8, receives_max: 4, sends_max: 4, bytes_max: 1 << 20 }
    }

    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let shared = &mut *self.shared.borrow_mut();
        shared.post()?;
        let receives = shared.receives.entry((self.own.index(), from.peer)).or_default();
        receives.push_back((into, length, token));
        Ok(())
    }

    fn send(
        &mut self,
        to: Way,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let shared = &mut *self.shared.borrow_mut();
        shared.post()?;
        let receives = shared.receives.get_mut(&(to.peer.index(), self.own));
        let (into, room, awaited) =
            receives.and_then(VecDeque::pop_front).expect("the peer awaits a block");
        assert!(length <= room);
        let bytes = shared.memory[self.own.index()][source.offset..source.offset + length].to_vec();
        let target = &mut shared.memory[to.peer.index()];
        target[into.offset..into.offset + length].copy_from_slice(&bytes);
        shared.events[self.own.index()].push_back(BlockEvent::Sent { way: to, token });
        let way = Way { peer: self.own, ..to };
        let received = BlockEvent::Received { way, token: awaited, immediate, length };
        shared.events[to.peer.index()].push_back(received);
        Ok(())
    }

    fn close(&mut self, view: ViewId, channel: Channel) {
        assert_eq!((view, channel), (VIEW, CHANNEL));
    }

    fn poll_block(&mut self) -> Option<BlockEvent> {
        self.shared.borrow_mut().events[self.own.index()].pop_front()
    }
}

/// A member's memory for messages: one at a time, after the staging block.
struct LargeMessageMemory {
    own: Rank,
    shared: Rc<RefCell<MembersState>>,
    messages: Vec<Vec<u8>>,
}

impl MessageMemory for LargeMessageMemory {
    fn incoming(&mut self, number: u64, bytes: usize) -> Option<Area> {
        assert_eq!(number, self.messages.len() as u64);
        (bytes <= MEMORY_BYTES - BLOCK).then_some(MESSAGE)
    }

    fn place(&mut self, from: Area, to: Area, length: usize) {
        assert!(length > 0, "there is nothing to place");
        let memory = &mut self.shared.borrow_mut().memory[self.own.index()];
        memory.copy_within(from.offset..from.offset + length, to.offset);
    }

    fn completed(&mut self, number: u64, bytes: usize) {
        assert_eq!(number, self.messages.len() as u64);
        let memory = &self.shared.borrow().memory[self.own.index()];
        self.messages.push(memory[BLOCK..BLOCK + bytes].to_vec());
    }
}

const MESSAGE: Area = Area { region: Region(1), offset: BLOCK };

/// Sends messages of these lengths, closes the group, and returns the messages that each member has
/// received.
fn run(
    algorithm: Algorithm,
    members: usize,
    lengths: &[usize],
    refused_each: u64,
) -> Vec<Vec<Vec<u8>>> {
    let ranks: Vec<Rank> = (0..).map(Rank).take(members).collect();
    let nodes: Vec<NodeId> = (0..).map(NodeId).take(members).collect();
    let lines: Vec<Vec<[Line; 1]>> =
        (0..members).map(|_| (0..members).map(|_| [Line::new()]).collect()).collect();
    let copies: Vec<Vec<RowWriter<'_>>> = lines
        .iter()
        .map(|of_owner| of_owner.iter().map(|copy| RowWriter::from_lines(copy)).collect())
        .collect();
    let shared = Rc::new(RefCell::new(MembersState {
        memory: vec![vec![0; MEMORY_BYTES]; members],
        receives: BTreeMap::new(),
        events: vec![VecDeque::new(); members],
        refused_each,
        posts: 0,
    }));
    let seen: Vec<Vec<Row<'_>>> =
        (0..members).map(|at| copies.iter().map(|of| of[at].reader()).collect()).collect();
    let mut words = vec![vec![0; words_for(BLOCKS_MAX)]; members];
    let mut all: Vec<(BlockGroup<'_>, MemberFabric<'_>, LargeMessageMemory)> = words
        .iter_mut()
        .zip(&ranks)
        .map(|(words, own)| {
            let row = copies[own.index()][own.index()];
            let rows = &seen[own.index()];
            let memory = ViewMemory { own: *own, members: &nodes, row, rows };
            let end = MemberFabric { own: *own, copies: &copies, shared: Rc::clone(&shared) };
            let group = BlockGroup::open(setup(&ranks, algorithm), &memory, &end, words);
            let messages = Vec::new();
            let kept = LargeMessageMemory { own: *own, shared: Rc::clone(&shared), messages };
            (group.expect("a group"), end, kept)
        })
        .collect();
    let mut left = lengths.iter().zip(1..);
    for _ in 0..200_000 {
        let root = &mut all[0].0;
        if !root.is_moving() {
            match left.next() {
                Some((length, seed)) => {
                    let memory = &mut shared.borrow_mut().memory[0];
                    for (at, byte) in memory[BLOCK..BLOCK + length].iter_mut().enumerate() {
                        *byte = (at * seed + seed) as u8;
                    }
                    root.send(MESSAGE, *length).expect("between messages");
                }
                None => root.close().unwrap_or_default(),
            }
        }
        for (group, end, kept) in &mut all {
            while let Some(event) = end.poll_block() {
                assert!(group.take(&event, kept));
            }
            group.step(end, kept);
        }
        if all.iter().all(|(group, ..)| group.outcome().is_some()) {
            break;
        }
    }
    for (group, end, _) in &all {
        let outcome = group.outcome();
        assert_eq!(outcome, Some(Outcome::Closed), "{} of {algorithm:?} {members}", end.own);
    }
    all.into_iter().map(|(.., kept)| kept.messages).collect()
}

fn algorithms(members: usize) -> Vec<Algorithm> {
    use Algorithm as A;
    let mut all = vec![A::Sequential, A::Interleaved, A::Chain, A::Tree, A::Pipeline];
    let racks = [2, 3].into_iter().filter(|racks| *racks <= members);
    all.extend(racks.filter_map(|racks| {
        NonZeroU16::new(racks as u16).map(|racks| Algorithm::Hybrid { racks })
    }));
    all
}

/// RDM-5: messages are whole, complete and in order at each member, even if every third or fifth
/// post must be retried.
#[test]
fn members_have_all_messages_when_the_group_closes() {
    let lengths = [3 * BLOCK + 7, 0, 1, BLOCK, 2 * BLOCK, 9 * BLOCK + 99];
    for members in [1, 2, 3, 4, 7, 8, 11] {
        for algorithm in algorithms(members) {
            for refused_each in [0, 5, 3] {
                let had = run(algorithm, members, &lengths, refused_each);
                assert!(had[0].iter().map(Vec::len).eq(lengths), "{algorithm:?} {members}");
                for member in &had {
                    assert_eq!(*member, had[0], "{algorithm:?} {members} {refused_each}");
                }
            }
        }
    }
}

/// The maximum number of blocks, which needs more steps than one call handles.
#[test]
fn every_schedule_transfers_a_message_of_maximum_length() {
    for algorithm in algorithms(9) {
        let had = run(algorithm, 9, &[BLOCK * BLOCKS_MAX as usize], 7);
        assert_eq!(had[8], had[0], "{algorithm:?}");
    }
}
