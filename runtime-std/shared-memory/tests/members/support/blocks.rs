//! Members that exchange blocks, and one that lies.

// Each test program uses its own part of it.
#![allow(dead_code)]

use std::os::unix::fs::FileExt as _;

use tramontane_core::fabric::{
    Area, BlockEvent, BlockStore as _, BlockUse, Blocks as _, Channel, ErrorKind, Event,
    Fabric as _, HostBlocks as _, Token, ViewPlan, Way,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_shared_memory::{BlockMemory, Error, Mappings, Rendezvous, Root, SharedMemory};

use super::{LONG, NEVER, Place, VIEW, name, open};

/// Bytes of a row here: cells alone.
pub const ROW_BYTES: usize = 128;

/// The most members of a group here.
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

/// Fresh block memory of a member.
pub fn block_memory(fabric: &SharedMemory, bytes: usize) -> Result<BlockMemory, Error> {
    fabric.block_store().memory(bytes, BlockUse::Both)
}

/// A member with block memory, in an open view.
pub struct Carrier {
    pub fabric: SharedMemory,
    pub memory: BlockMemory,
    pub mappings: Mappings,
}

pub fn carrier(root: &Root, group: &str, members: u16, own: u16, bytes: usize) -> Carrier {
    let group = name(group);
    let rendezvous =
        Rendezvous::of_rows(root, &group, &plan(VIEW, Rank(own), members)).expect("a rank");
    let mappings = rendezvous.join(LONG, &NEVER).expect("it joins");
    let fabric = open(&mappings);
    let memory = block_memory(&fabric, bytes).expect("block memory");
    Carrier { fabric, memory, mappings }
}

pub fn carriers(root: &Root, group: &str, members: u16, bytes: usize) -> Vec<Carrier> {
    std::thread::scope(|scope| {
        let joining: Vec<_> = (0..members)
            .map(|own| scope.spawn(move || carrier(root, group, members, own, bytes)))
            .collect();
        joining.into_iter().map(|one| one.join().expect("no panic")).collect()
    })
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

    /// Polls until a block came or left.
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

    /// What is told of peers, after some polls for blocks, of which none may come.
    #[track_caller]
    pub fn events(&mut self) -> Vec<Event> {
        for _ in 0..64 {
            assert_eq!(self.fabric.poll_block(), None);
        }
        std::iter::from_fn(|| self.fabric.poll()).filter(|event| *event != Event::Woken).collect()
    }
}

/// The event of a block that was received.
pub fn received(way: Way, token: u64, length: usize) -> BlockEvent {
    BlockEvent::Received { way, token: Token(token), immediate: 77, length }
}

/// The event of a block that was sent.
pub fn sent(way: Way, token: u64) -> BlockEvent {
    BlockEvent::Sent { way, token: Token(token) }
}

/// Where a lane begins in a row's file (`shared_memory::desk`): behind header, row, and the list of
/// closed channels.
fn lane_at(peer: u16) -> usize {
    4096 + ROW_BYTES + 128 + usize::from(peer) * (128 + 128 * 32 + 512 * 8)
}

/// Numbers in a lane that its owner changes behind its fabric's back: (offset, value).
pub fn lie(place: &Place, group: &str, liar: u16, peer: u16, numbers: &[(usize, u64)]) {
    let path = place.root().path().join(group).join(format!("row-{}", 10 + liar));
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("the row's file");
    for (offset, value) in numbers {
        file.write_all_at(&value.to_le_bytes(), (lane_at(peer) + offset) as u64).expect("written");
    }
}

/// Offsets in a lane.
pub const POSTED: usize = 8;
pub const TAKEN: usize = 64;
pub const SETTLED: usize = 72;
pub const ENTRY: usize = 128;
pub const ANSWER: usize = 128 + 128 * 32;
