//! Blocks, which use a separate connection to each peer, so that their messages do not use up the
//! receives of notices.
//!
//! [`protocol::blocks`](crate::protocol::blocks) decides which end writes which block to which
//! address; this module carries this out on the device. Memory is allocated on demand, and any
//! number of channels share the connection.
//!
//! After a channel is closed or a peer is lost, memory stays in use for a while. Writes in flight
//! are read to their end. Memory into which a peer may still write is kept until the peer has
//! announced that it will not write any more, or until its connection has ended. Only then is the
//! memory released and its number reused.

use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Channel, ErrorKind, HostBlocks, LossCause, Token, Way,
};
use tramontane_core::ids::{Rank, ViewId};

use super::block_memory::{BlockRange, BlockStore};
use super::block_traffic::{BlockPeer, BlockTraffic, Broken, block_limits};
use super::{Life, Loss, PeerStage, Verbs};
use crate::protocol::Name;
use crate::protocol::blocks::{Block, Envelope, Receive};

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
        if !may_post || self.peers[rank.index()].stage != PeerStage::Live {
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

    /// Records that a request on a connection for blocks has been acknowledged.
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
        let live = self.peers.iter().map(|peer| peer.stage == PeerStage::Live);
        self.blocks
            .peers
            .iter()
            .zip(live)
            .any(|(peer, is_live)| is_live && peer.as_ref().is_some_and(owes))
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
