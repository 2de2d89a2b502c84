//! Members that exchange blocks, and one that lies.

// Each test program uses only some of these helpers.
#![allow(dead_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use tramontane_core::fabric::{
    Area, BlockEvent, BlockStore as _, BlockUse, Blocks as _, Channel, ErrorKind, Event,
    Fabric as _, HostBlocks as _, Token, ViewPlan, ViewRows as _, Way,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_shared_memory::{Error, Mappings, Root, SharedBlockMemory, SharedMemory};

use super::{MappedMember, VIEW, await_all, make};

/// The size in bytes of a row in these tests, which contains only cells.
pub const ROW_BYTES: usize = 128;

/// The maximum number of members of a group in these tests.
const MEMBERS_MAX: usize = 8;

/// A group's rows.
pub fn plan(view: ViewId, own: Rank, members: u16) -> ViewPlan<'static> {
    const IDS: [NodeId; MEMBERS_MAX] = {
        let mut ids = [NodeId(10); MEMBERS_MAX];
        let mut rank = 0;
        while rank < MEMBERS_MAX {
            ids[rank] = NodeId(10 + rank as u32);
            rank += 1;
        }
        ids
    };
    let members = &const { IDS }[..usize::from(members)];
    ViewPlan::with_sizes(view, own, members, &[ROW_BYTES; MEMBERS_MAX], 7).with_blocks()
}

/// Allocates fresh block memory for a member.
pub fn block_memory(fabric: &SharedMemory, bytes: usize) -> Result<SharedBlockMemory, Error> {
    fabric.block_store().memory(bytes, BlockUse::Both)
}

/// A member with block memory, in an open view.
pub struct Carrier {
    pub fabric: SharedMemory,
    pub memory: SharedBlockMemory,
    pub mappings: Mappings,
}

impl Carrier {
    fn of(member: MappedMember, bytes: usize) -> Self {
        let MappedMember { fabric, mappings } = member;
        let memory = block_memory(&fabric, bytes).expect("block memory");
        Self { fabric, memory, mappings }
    }
}

fn member(root: &Root, group: &str, members: u16, own: u16) -> MappedMember {
    make(root, group, &plan(VIEW, Rank(own), members)).expect("memory").open()
}

/// Starts one member as if in its own process, with the rows of all members.
pub fn carrier(root: &Root, group: &str, members: u16, own: u16, bytes: usize) -> Carrier {
    Carrier::of(member(root, group, members, own).await_peers(), bytes)
}

/// All members.
pub fn carriers(root: &Root, group: &str, members: u16, bytes: usize) -> Vec<Carrier> {
    let mut all: Vec<_> = (0..members).map(|own| member(root, group, members, own)).collect();
    await_all(&mut all);
    all.into_iter().map(|member| Carrier::of(member, bytes)).collect()
}

pub const fn way(channel: u16, peer: u16) -> Way {
    Way { view: VIEW, channel: Channel(channel), peer: Rank(peer) }
}

impl Carrier {
    pub fn area(&self, offset: usize) -> Area {
        Area { region: self.memory.region(), offset }
    }

    pub fn receive(
        &mut self,
        way: Way,
        offset: usize,
        length: usize,
        token: u64,
    ) -> Result<(), ErrorKind> {
        let into = self.area(offset);
        self.fabric.post_receive(way, into, length, Token(token))
    }

    pub fn send(
        &mut self,
        way: Way,
        offset: usize,
        length: usize,
        token: u64,
    ) -> Result<(), ErrorKind> {
        let source = self.area(offset);
        self.fabric.send(way, source, length, 77, Token(token))
    }

    /// Polls until a block has been received or sent.
    #[track_caller]
    pub fn next_block(&mut self) -> BlockEvent {
        for _ in 0..10_000_000_u32 {
            if let Some(event) = self.fabric.poll_block() {
                return event;
            }
            std::thread::yield_now();
        }
        panic!("nothing came");
    }

    pub fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memory.read(offset, &mut bytes).expect("inside");
        bytes
    }

    /// Returns the events about peers, after several polls for blocks, which must find none.
    #[track_caller]
    pub fn events(&mut self) -> Vec<Event> {
        for _ in 0..64 {
            assert_eq!(self.fabric.poll_block(), None);
        }
        std::iter::from_fn(|| self.fabric.poll()).filter(|event| *event != Event::Woken).collect()
    }
}

/// Returns the event of a received block.
pub fn received(way: Way, token: u64, length: usize) -> BlockEvent {
    BlockEvent::Received { way, token: Token(token), immediate: 77, length }
}

/// Returns the event of a sent block.
pub fn sent(way: Way, token: u64) -> BlockEvent {
    BlockEvent::Sent { way, token: Token(token) }
}

/// Returns the offset of a lane after a row (see `block_queues`). The lane follows the list of
/// closed channels.
fn lane_at(peer: u16) -> usize {
    ROW_BYTES + 128 + usize::from(peer) * (128 + 128 * 32 + 512 * 8)
}

/// Writes numbers, given as (offset, value), into a lane as its owner, bypassing the owner's
/// fabric.
pub fn lie(liar: &Carrier, peer: u16, numbers: &[(usize, u64)]) {
    for (offset, value) in numbers {
        let row = liar.mappings.row().reader();
        // SAFETY: the lane follows the row in the same mapping, which its owner may write.
        let cell = unsafe { row.base().add(lane_at(peer) + offset).cast::<AtomicU64>().as_ref() };
        cell.store(*value, Ordering::Release);
    }
}

/// Offsets in a lane.
pub const POSTED: usize = 8;
pub const TAKEN: usize = 64;
pub const SETTLED: usize = 72;
pub const ENTRY: usize = 128;
pub const ANSWER: usize = 128 + 128 * 32;
