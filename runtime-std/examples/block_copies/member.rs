//! The memory of one process, and its place at the fabric.

use std::fs::OpenOptions;
use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap};
use tramontane_core::fabric::{Area, BlockEvent, Blocks as _, Channel, Fabric as _, Token, ViewMemory, Way};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_runtime::shared_memory::copying::{Stores, copy};
use tramontane_runtime::shared_memory::{BlockMemory, GroupName, Rendezvous, Root, RowPlan, SharedMemory};

use super::Plan;

const VIEW: ViewId = ViewId(0);

/// A mapped file, all of it touched.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    base: NonNull<u8>,
    bytes: usize,
}

impl Piece {
    fn map(plan: &Plan, name: &str) -> Self {
        let (path, bytes) = (plan.folder.join(name), plan.largest());
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path).expect("a file");
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes as u64).expect("memory");
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: the kernel chooses the address.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, access, flags, &file, 0) }.expect("mapped");
        Self { base: NonNull::new(base.cast()).expect("an address"), bytes }
    }

    fn fill(&self, value: u8) {
        // SAFETY: mapped, so long, and nobody has begun.
        unsafe { self.base.write_bytes(value, self.bytes) };
    }
}

/// One process.
pub struct Member {
    shared: Piece,
    own: Piece,
    target: Piece,
    fabric: SharedMemory,
    memory: BlockMemory,
}

impl Member {
    pub fn new(plan: &Plan, rank: u16) -> Self {
        let piece = |kind: &str, rank: u16| Piece::map(plan, &format!("{kind}-{rank}"));
        let (shared, own, target) = (piece("source", 0), piece("source", rank), piece("target", rank));
        own.fill(1);
        target.fill(2);
        let members: Vec<NodeId> = (0..=plan.receivers).map(|rank| NodeId(u32::from(rank) + 1)).collect();
        let rows = RowPlan::with_sizes(&members, 1, &vec![64; members.len()]).with_blocks();
        let (root, group) = (Root::under(&plan.folder), GroupName::new("copies").expect("a name"));
        let rendezvous = Rendezvous::of_rows(&root, &group, rows, Rank(rank)).expect("a rank");
        let mappings = rendezvous.join(Duration::from_secs(120), &AtomicBool::new(false)).expect("all join");
        let mut memory = mappings.residence().block_memory(plan.largest()).expect("block memory");
        memory.write(0, &vec![3; plan.largest()]).expect("inside");
        let mut fabric = SharedMemory::new(&mappings);
        let rows = mappings.rows();
        let view = ViewMemory { own: Rank(rank), members: &members, row: mappings.row(), rows: &rows };
        fabric.open(VIEW, &view).expect("it opens");
        fabric.lend_blocks(&memory).expect("of this process");
        Self { shared, own, target, fabric, memory }
    }

    /// What is copied: the sender's memory, or the own.
    pub fn source(&self, own: bool) -> Piece {
        if own { self.own } else { self.shared }
    }

    pub fn copy(&self, source: &Piece, at: usize, bytes: usize, stores: Stores) {
        assert!(at + bytes <= source.bytes);
        // SAFETY: in range by the assertion, both being as long; two files; nobody else writes this target.
        unsafe { copy(source.base.add(at), self.target.base.add(at), bytes, stores) };
    }

    fn area(&self) -> Area {
        Area { region: self.memory.region(), offset: 0 }
    }

    pub fn post(&mut self, bytes: usize) {
        let (into, way) = (self.area(), Way { view: VIEW, channel: Channel(0), peer: Rank(0) });
        self.fabric.post_receive(way, into, bytes, Token(0)).expect("posted");
    }

    pub fn receive(&mut self) {
        while !matches!(self.fabric.poll_block(), Some(BlockEvent::Received { .. })) {
            if self.fabric.arm() {
                // Nothing is under way: others may run.
                self.fabric.disarm();
                std::thread::yield_now();
            }
            while self.fabric.poll().is_some() {}
        }
    }

    pub fn send(&mut self, bytes: usize, receivers: u16) {
        let source = self.area();
        for peer in (1..=receivers).map(Rank) {
            let way = Way { view: VIEW, channel: Channel(0), peer };
            self.fabric.send(way, source, bytes, 0, Token(0)).expect("posted");
        }
        let mut left = receivers;
        while left > 0 {
            match self.fabric.poll_block() {
                Some(_) => left -= 1,
                None => std::thread::sleep(Duration::from_micros(100)),
            }
        }
    }
}
