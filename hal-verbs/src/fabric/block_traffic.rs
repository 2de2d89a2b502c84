//! The state of all blocks of a view: exchanges with the peers, closed channels, and events.

use std::sync::Arc;

use tramontane_core::fabric::{BlockLimits, Capabilities, Channel, LossCause};
use tramontane_core::ids::{Rank, ViewId};

use super::block_memory::BlockStore;
use super::link::{Link, Purpose};
use crate::adapter::{MemoryRegion, SendBuffers};
use crate::protocol::Counters;
use crate::protocol::blocks::{CHANNELS, EventQueue, Exchange, RECEIVES_MAX, SENDS_MAX};

/// The blocks in flight with one peer.
pub(crate) type BlockExchange = Exchange<Arc<MemoryRegion>>;

/// The connection for blocks with one peer.
#[derive(Debug)]
pub(super) struct BlockPeer {
    pub(super) link: usize,
    pub(super) exchange: BlockExchange,
}

/// All blocks of the view.
#[derive(Debug)]
pub(crate) struct BlockTraffic {
    /// The peers by rank; `None` without a connection for blocks.
    pub(super) peers: Vec<Option<BlockPeer>>,
    pub(super) store: BlockStore,
    pub(super) closed: ClosedChannels,
    pub(super) events: EventQueue,
}

/// The channels that have been closed at this end, by number.
#[derive(Debug)]
pub(super) struct ClosedChannels(Vec<bool>);

impl ClosedChannels {
    /// Returns whether a channel is closed. Numbers that are not channels count as closed.
    pub(super) fn contains(&self, channel: Channel) -> bool {
        self.0.get(usize::from(channel.0)).copied().unwrap_or(true)
    }

    /// Marks a channel as closed. Returns false if it was closed before.
    pub(super) fn insert(&mut self, channel: Channel) -> bool {
        let place = self.0.get_mut(usize::from(channel.0));
        place.is_some_and(|is_closed| !std::mem::replace(is_closed, true))
    }
}

/// The reason why nothing more can be sent to a peer.
pub(super) enum Broken {
    /// The device refused a list.
    Post,
    /// The peer violated the protocol, or this member's block did.
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

    pub(super) fn peer(&mut self, rank: Rank) -> Option<(&mut BlockPeer, &mut EventQueue)> {
        let peer = self.peers.get_mut(rank.index())?.as_mut()?;
        Some((peer, &mut self.events))
    }

    /// Removes a lost peer; outstanding blocks are no longer reported. The returned exchange keeps
    /// the memory into which the peer may write until its connection has ended.
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
    pub(super) fn post(
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

/// Returns the block limits of a fabric with these capabilities.
pub(crate) const fn block_limits(capabilities: &Capabilities) -> BlockLimits {
    BlockLimits {
        channels: CHANNELS,
        receives_max: RECEIVES_MAX,
        sends_max: SENDS_MAX,
        bytes_max: capabilities.write_bytes_max,
    }
}
