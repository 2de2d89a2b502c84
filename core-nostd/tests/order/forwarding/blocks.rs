//! The same tests for fabrics with blocks (FAB-4).

use std::ops::Deref;
use std::ptr::NonNull;

use super::recorder::{Recorder, StaticRows, static_rows};
use super::{Answers, PEER, VIEW, is_handed_on, say};
use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, BlockStore, BlockUse, Blocks, Channel, ErrorKind, HostBlocks,
    Region, Token, Way,
};
use tramontane_core::ids::ViewId;
use tramontane_core::memory::{BlockMemory, BlockPages};

const WAY: Way = Way { view: VIEW, channel: Channel(3), peer: PEER };

impl Blocks for Recorder {
    fn block_limits(&self) -> BlockLimits {
        let _ = self.note("block_limits", &());
        BlockLimits { channels: 4, receives_max: 5, sends_max: 6, bytes_max: 7 }
    }
    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        self.note("post_receive", &(from, into, length, token))
    }
    fn send(
        &mut self,
        to: Way,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), ErrorKind> {
        self.note("send", &(to, source, length, immediate, token))
    }
    fn close(&mut self, view: ViewId, channel: Channel) {
        let _ = self.note("close", &(view, channel));
    }
    fn poll_block(&mut self) -> Option<BlockEvent> {
        let event = BlockEvent::Sent { way: WAY, token: Token(78) };
        self.note("poll_block", &()).is_ok().then_some(event)
    }
}

/// Block memory consisting of the recorder's only line.
#[derive(Clone)]
pub struct OneLine;

pub struct Pages(StaticRows);

// SAFETY: the memory is static and consists of atomics.
unsafe impl BlockPages for Pages {
    fn base(&self) -> NonNull<u8> {
        self.0.1[0].base()
    }
    fn bytes(&self) -> usize {
        self.0.1[0].bytes()
    }
}

impl Deref for Pages {
    type Target = Self;
    fn deref(&self) -> &Self {
        self
    }
}

impl BlockStore for OneLine {
    type Pages = Pages;
    type Error = ErrorKind;
    fn memory(&self, bytes: usize, purpose: BlockUse) -> Result<BlockMemory<Pages>, ErrorKind> {
        let is_made = bytes <= 64 && purpose == BlockUse::Both;
        is_made.then(|| BlockMemory::new(Region(1), Pages(static_rows()))).ok_or(ErrorKind::Other)
    }
}

impl HostBlocks for Recorder {
    type Store = OneLine;
    fn block_store(&self) -> OneLine {
        let _ = self.note("block_store", &());
        OneLine
    }
}

fn call_blocks(fabric: &mut impl HostBlocks) -> Answers {
    let area = |offset| Area { region: Region(1), offset };
    let store = fabric.block_store();
    let made = store.memory(64, BlockUse::Both).map(|memory| (memory.region(), memory.bytes()));
    fabric.close(VIEW, Channel(2));
    vec![
        say(&made.is_ok_and(|made| made == (Region(1), 64))),
        say(&store.fills_late()),
        say(&fabric.block_limits()),
        say(&fabric.post_receive(WAY, area(16), 32, Token(7))),
        say(&fabric.send(WAY, area(48), 8, 21, Token(8))),
        say(&fabric.poll_block()),
    ]
}

#[test]
fn borrowed_fabric_forwards_block_calls_and_answers() {
    is_handed_on(6, call_blocks, |mut recorder| call_blocks(&mut recorder));
}

/// A store's memory may be reused at once, unless the store says otherwise.
#[test]
fn block_memory_may_be_reused_immediately_by_default() {
    assert!(!OneLine.fills_late());
}
