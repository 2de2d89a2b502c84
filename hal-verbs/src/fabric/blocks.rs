//! Blocks, over a separate connection with each peer, so that their messages do not use up the
//! receives of notices.
//!
//! [`protocol::blocks`](crate::protocol::blocks) decides which end writes which block where; this
//! module carries that out on the device. Memory is allocated on demand, and any number of channels
//! share the connection.
//!
//! After a channel is closed or a peer is lost, memory stays in use for a while. Writes in flight
//! are read to their end. Memory that a peer may still write into is kept until the peer has said
//! that it writes no more, or until its connection has ended. Only then is the memory released and
//! its number reused.

use std::sync::Arc;

use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Capabilities, Channel, ErrorKind, HostBlocks, LossCause,
    Token, Way,
};
use tramontane_core::ids::{Rank, ViewId};

use super::block_memory::{BlockRange, BlockStore};
use super::link::Link;
use super::{Life, Loss, Purpose, Stage, Verbs};
use crate::adapter::{MemoryRegion, SendBuffers};
use crate::protocol::blocks::{
    Block, CHANNELS, Envelope, EventQueue, Exchange, RECEIVES_MAX, Receive, SENDS_MAX,
};
use crate::protocol::{Counters, Name};

/// The blocks in flight with one peer.
pub(crate) type BlockExchange = Exchange<Arc<MemoryRegion>>;

/// The connection for blocks with one peer.
#[derive(Debug)]
struct BlockPeer {
    link: usize,
    exchange: BlockExchange,
}

/// All blocks of the view.
#[derive(Debug)]
pub(crate) struct BlockTraffic {
    /// The peers by rank; `None` without a connection for blocks.
    peers: Vec<Option<BlockPeer>>,
    store: BlockStore,
    closed: ClosedChannels,
    events: EventQueue,
}

/// The channels that were closed at this end, by number.
#[derive(Debug)]
struct ClosedChannels(Vec<bool>);

impl ClosedChannels {
    /// Numbers that are not channels count as closed.
    fn contains(&self, channel: Channel) -> bool {
        self.0.get(usize::from(channel.0)).copied().unwrap_or(true)
    }

    /// Returns false if the channel was closed before.
    fn insert(&mut self, channel: Channel) -> bool {
        let place = self.0.get_mut(usize::from(channel.0));
        place.is_some_and(|is_closed| !std::mem::replace(is_closed, true))
    }
}

/// The reason why nothing more can be sent to a peer.
enum Broken {
    /// The device refused a list.
    Post,
    /// The peer broke the rules, or this member's block did.
    Peer(LossCause),
}

impl BlockTraffic {
    pub(super) fn new(view: ViewId, links: &[Link], members: usize, store: BlockStore) -> Self {
        let mut peers: Vec<Option<BlockPeer>> = (0..members).map(|_| None).collect();
        for (index, link) in links.iter().enumerate() {
            if link.purpose == Purpose::Blocks {
                let exchange = Exchange::new(link.peer);
                peers[link.peer.index()] = Some(BlockPeer { link: index, exchange });
            }
        }
        let closed = ClosedChannels(vec![false; usize::from(CHANNELS)]);
        Self { peers, store, closed, events: EventQueue::new(view) }
    }

    pub(super) fn has_news(&self) -> bool {
        !self.events.is_empty()
    }

    fn peer(&mut self, rank: Rank) -> Option<(&mut BlockPeer, &mut EventQueue)> {
        let peer = self.peers.get_mut(rank.index())?.as_mut()?;
        Some((peer, &mut self.events))
    }

    /// Removes a lost peer; outstanding blocks are no longer reported. The returned exchange keeps
    /// the memory that the peer may write into until its connection has ended.
    pub(super) fn forget(&mut self, rank: Rank) -> Option<BlockExchange> {
        let mut gone = self.peers.get_mut(rank.index()).and_then(Option::take)?.exchange;
        gone.end(&mut self.events);
        Some(gone)
    }

    /// Removes all peers at the end of the view.
    pub(super) fn clear(&mut self) -> Vec<BlockExchange> {
        self.events.forget(|_| true);
        self.peers.iter_mut().filter_map(Option::take).map(|peer| peer.exchange).collect()
    }
}

impl BlockPeer {
    /// Posts what can be sent now, messages first.
    fn post(
        &mut self,
        link: &mut Link,
        buffers: &mut SendBuffers,
        counters: &mut Counters,
    ) -> Result<(), Broken> {
        while link.queue.has_room_for_control() {
            let Some(envelope) = self.exchange.next_message() else { break };
            link.post_message(buffers, &envelope.encode(), counters).map_err(|_| Broken::Post)?;
        }
        while link.queue.has_room(1) {
            let order = self.exchange.next_write(link.queue.posted()).map_err(Broken::Peer)?;
            let Some(order) = order else { break };
            link.post_block(buffers, &order, counters).map_err(|_| Broken::Post)?;
        }
        Ok(())
    }
}

impl Verbs {
    /// Returns the memory of a block that may be sent or received.
    fn block_range(&self, way: Way, area: Area, length: usize) -> Result<BlockRange, ErrorKind> {
        self.target(way.view, way.peer)?;
        if self.blocks.closed.contains(way.channel) || length > self.capabilities.write_bytes_max {
            return Err(ErrorKind::OutOfRange);
        }
        self.blocks.store.range(area, length).ok_or(ErrorKind::OutOfRange)
    }

    /// Posts everything that is due to a peer, as far as there is room.
    pub(super) fn post_blocks(&mut self, rank: Rank) {
        let may_post = matches!(self.life, Life::Fresh | Life::Open(_));
        if !may_post || self.peers[rank.index()].stage != Stage::Live {
            return;
        }
        let Self { links, buffers, counters, blocks, .. } = self;
        let Some((peer, _)) = blocks.peer(rank) else { return };
        let index = peer.link;
        match peer.post(&mut links[index], buffers, counters) {
            Ok(()) => {}
            Err(Broken::Post) => self.fail_post(index),
            Err(Broken::Peer(cause)) => self.lose(rank, Loss::of(cause)),
        }
    }

    /// Records that a request on a connection for blocks was acknowledged.
    pub(super) fn blocks_acknowledged(&mut self, rank: Rank, index: usize) {
        let queue = &self.links[index].queue;
        let done = queue.posted() - queue.in_flight();
        if let Some((peer, events)) = self.blocks.peer(rank) {
            peer.exchange.acknowledged(done, events);
            self.post_blocks(rank);
        }
    }

    /// Handles a message on a connection for blocks.
    pub(super) fn take_block_message(&mut self, name: Name, rank: Rank, length: u32) {
        self.counters.block_messages_taken += 1;
        let link = &mut self.links[name.link()];
        let envelope = link.message(name, length).and_then(|bytes| Envelope::decode(&bytes));
        let Some(envelope) = envelope else {
            return self.lose(rank, Loss::of(LossCause::Misbehaved));
        };
        if link.repost(name).is_err() {
            return self.lose(rank, Loss::of(LossCause::Unreachable));
        }
        let BlockTraffic { peers, events, closed, .. } = &mut self.blocks;
        let Some(Some(peer)) = peers.get_mut(rank.index()) else { return };
        match peer.exchange.hear(&envelope, |on| closed.contains(on), events) {
            Ok(()) => self.post_blocks(rank),
            Err(cause) => self.lose(rank, Loss::of(cause)),
        }
    }

    /// Returns whether blocks, or messages about them, are still waiting to be sent to a live peer.
    pub(super) fn owes_blocks(&self) -> bool {
        let owes = |peer: &BlockPeer| !peer.exchange.is_idle();
        let live = self.peers.iter().map(|peer| peer.stage == Stage::Live);
        self.blocks
            .peers
            .iter()
            .zip(live)
            .any(|(peer, is_live)| is_live && peer.as_ref().is_some_and(owes))
    }
}

/// Returns the block limits of a fabric with these capabilities.
pub(crate) const fn block_limits(capabilities: &Capabilities) -> BlockLimits {
    BlockLimits {
        channels: CHANNELS,
        receives_max: RECEIVES_MAX,
        sends_max: SENDS_MAX,
        bytes_max: capabilities.write_bytes_max,
    }
}

impl Blocks for Verbs {
    fn block_limits(&self) -> BlockLimits {
        block_limits(&self.capabilities)
    }

    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let BlockRange { memory, offset, length } = self.block_range(from, into, length)?;
        if !memory.may_be_written() {
            return Err(ErrorKind::OutOfRange);
        }
        let address =
            u64::try_from(offset).ok().and_then(|offset| memory.address().checked_add(offset));
        let address = address.ok_or(ErrorKind::OutOfRange)?;
        let key = memory.remote_key();
        let (peer, events) = self.blocks.peer(from.peer).ok_or(ErrorKind::OutOfRange)?;
        peer.exchange.receive(
            from.channel,
            Receive { _memory: memory, address, key, length, token },
            events,
        )?;
        self.post_blocks(from.peer);
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
        let BlockRange { memory, offset, length } = self.block_range(to, source, length)?;
        let block = Block { memory, offset, length, number: immediate, token };
        let (peer, events) = self.blocks.peer(to.peer).ok_or(ErrorKind::OutOfRange)?;
        peer.exchange.send(to.channel, block, events)?;
        self.post_blocks(to.peer);
        Ok(())
    }

    fn close(&mut self, view: ViewId, channel: Channel) {
        let BlockTraffic { peers, events, closed, .. } = &mut self.blocks;
        if view != self.view || !closed.insert(channel) {
            return;
        }
        for peer in peers.iter_mut().flatten() {
            peer.exchange.close(channel, events);
        }
        events.forget(|way| way.channel == channel);
        for rank in (0..).map(Rank).take(self.peers.len()) {
            self.post_blocks(rank);
        }
    }

    fn poll_block(&mut self) -> Option<BlockEvent> {
        if !self.blocks.has_news() {
            self.take_batch();
        }
        self.blocks.events.next()
    }
}

impl HostBlocks for Verbs {
    type Store = BlockStore;

    fn block_store(&self) -> BlockStore {
        self.blocks.store.clone()
    }
}
