//! Blocks: sends with an immediate value, over a connection of their own, so that notices do not take their
//! receives.
//!
//! There is one channel. An adapter that was told to read memory cannot be told otherwise without losing the peer, so
//! a closed channel's memory is in use until the view is retired; its events are kept back at once.

use std::collections::VecDeque;

use tramontane_core::fabric::{Area, BlockEvent, BlockLimits, Blocks, Channel, ErrorKind, Token, Way};
use tramontane_core::ids::{Rank, ViewId};

use super::link::{Link, Purpose};
use super::{Stage, Verbs};
use crate::ffi::Operation;

/// The one channel: there is one queue pair for blocks with each peer.
const CHANNEL: Channel = Channel(0);

/// Receives that may be posted for one peer: few, since adapters slow down with many (RDMC 4.2).
pub(crate) const RECEIVES_MAX: u32 = 16;

/// Blocks under way or done and not polled, in all.
const BLOCKS_MAX: usize = 1024;

/// What is under way and what has come.
#[derive(Debug)]
pub(crate) struct BlockLinks {
    /// By rank, the connection for blocks; none where there is no block memory.
    links: Vec<Option<usize>>,
    /// By rank, the tokens of posted receives, the oldest first: blocks come in that order.
    receives: Vec<VecDeque<Token>>,
    events: VecDeque<BlockEvent>,
    /// Sends and receives under way.
    under_way: usize,
    /// By rank, how many of those are sends.
    sends: Vec<usize>,
    /// The channel was closed.
    is_closed: bool,
}

impl BlockLinks {
    pub(super) fn new(links: &[Link], members: usize) -> Self {
        let mut table = vec![None; members];
        for (index, link) in links.iter().enumerate() {
            if link.purpose == Purpose::Blocks {
                table[link.peer.index()] = Some(index);
            }
        }
        let depth = usize::try_from(RECEIVES_MAX).unwrap_or(0);
        Self {
            links: table,
            receives: (0..members).map(|_| VecDeque::with_capacity(depth)).collect(),
            events: VecDeque::with_capacity(BLOCKS_MAX),
            under_way: 0,
            sends: vec![0; members],
            is_closed: false,
        }
    }

    pub(super) fn has_news(&self) -> bool {
        !self.events.is_empty()
    }

    fn has_place(&self) -> bool {
        self.events.len() + self.under_way < BLOCKS_MAX
    }

    pub(super) fn sent(&mut self, view: ViewId, peer: Rank, token: Token) {
        self.under_way -= 1;
        self.sends[peer.index()] -= 1;
        if !self.is_closed {
            self.events.push_back(BlockEvent::Sent { way: Way { view, channel: CHANNEL, peer }, token });
        }
    }

    pub(super) fn received(&mut self, view: ViewId, peer: Rank, immediate: Option<u32>, bytes: u32) {
        let Some(token) = self.receives[peer.index()].pop_front() else { return };
        self.under_way -= 1;
        if self.is_closed {
            return;
        }
        // Who sends without a number sends none.
        let (immediate, length) = (immediate.unwrap_or(0), usize::try_from(bytes).unwrap_or(0));
        let way = Way { view, channel: CHANNEL, peer };
        self.events.push_back(BlockEvent::Received { way, token, immediate, length });
    }

    /// A peer is gone: nothing more comes of what is under way.
    pub(super) fn forget(&mut self, peer: Rank) {
        let receives = &mut self.receives[peer.index()];
        self.under_way -= receives.len() + std::mem::take(&mut self.sends[peer.index()]);
        receives.clear();
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.events.clear();
    }

    pub(super) fn clear(&mut self) {
        self.links.fill(None);
        self.receives.iter_mut().for_each(VecDeque::clear);
        self.sends.fill(0);
        self.events.clear();
        self.under_way = 0;
    }
}

impl Verbs {
    /// The connection for blocks with a peer.
    fn block_link(&self, way: Way, area: Area, length: usize) -> Result<usize, ErrorKind> {
        let Way { view, channel, peer } = way;
        self.target(view, peer)?;
        if channel != CHANNEL || self.blocks.is_closed {
            return Err(ErrorKind::OutOfRange);
        }
        debug_assert_eq!(self.peers[peer.index()].stage, Stage::Live);
        let index = self.blocks.links[peer.index()].ok_or(ErrorKind::OutOfRange)?;
        let link = &self.links[index];
        let fits = area.region == link.region()
            && link.has_own_area(area.offset, length)
            && length <= self.capabilities.write_bytes_max;
        if fits { Ok(index) } else { Err(ErrorKind::OutOfRange) }
    }
}

impl Blocks for Verbs {
    fn block_limits(&self) -> BlockLimits {
        BlockLimits {
            channels: 1,
            receives_max: usize::try_from(RECEIVES_MAX).unwrap_or(0),
            bytes_max: self.capabilities.write_bytes_max,
        }
    }

    fn post_receive(&mut self, from: Way, into: Area, length: usize, token: Token) -> Result<(), ErrorKind> {
        let index = self.block_link(from, into, length)?;
        let from = from.peer;
        let posted = self.blocks.receives[from.index()].len();
        if posted >= usize::try_from(RECEIVES_MAX).unwrap_or(0) || !self.blocks.has_place() {
            return Err(ErrorKind::QueueFull);
        }
        if self.links[index].post_receive(into.offset, length).is_err() {
            self.fail_post(index);
            return Err(ErrorKind::PeerLost);
        }
        self.blocks.receives[from.index()].push_back(token);
        self.blocks.under_way += 1;
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
        let index = self.block_link(to, source, length)?;
        let to = to.peer;
        let Self { links, buffers, counters, blocks, .. } = self;
        let link = &mut links[index];
        if !blocks.has_place() || !link.queue.has_room(1) {
            counters.refused += 1;
            return Err(ErrorKind::QueueFull);
        }
        let bytes = (length > 0).then_some((source.offset, length));
        let operation = |_| Operation::SendWithImmediate(immediate);
        self.waiting += 1;
        blocks.under_way += 1;
        blocks.sends[to.index()] += 1;
        if link.post_one(buffers, operation, bytes, Some(token), true, counters).is_err() {
            self.fail_post(index);
            return Err(ErrorKind::PeerLost);
        }
        Ok(())
    }

    fn close(&mut self, view: ViewId, channel: Channel) {
        if channel == CHANNEL && view == self.view {
            self.blocks.close();
        }
    }

    fn poll_block(&mut self) -> Option<BlockEvent> {
        if self.blocks.events.is_empty() {
            self.take_batch();
        }
        self.blocks.events.pop_front()
    }
}
