//! `Blocks` over shared memory: the receiver copies each block once, directly from the sender's
//! memory into its own.
//!
//! A send is an entry in the sender's block queues, plus a ring if the peer is asleep. The peer
//! takes entries, matches them with its receives, copies one piece per poll, and answers. So each
//! poll stays short, and a long block takes several polls.
//!
//! The path of a block involves no allocation and no system call, and the only lock is that of the
//! list of memories, in which the block's memory is looked up. The exceptions are waking a sleeper,
//! the first receive of a channel from a peer, and the first block from a memory to a peer, which
//! has to be sent the descriptor and map it.

use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Channel, ErrorKind, HostBlocks, Token, Way,
};
use tramontane_core::ids::ViewId;

use super::block_memory::SharedBlockStore;
use super::block_queues::{CHANNELS, SENDS};
use super::fabric::SharedMemory;
use super::receiving::RECEIVES_MAX;

impl SharedMemory {
    /// Does the work of [`poll_block`](Blocks::poll_block) without returning anything: reads the
    /// peers' messages, and copies one piece. The results wait for `poll_block`.
    pub fn carry_blocks(&mut self) {
        for view in self.views.iter_mut() {
            view.carry_blocks(&mut self.events);
        }
    }

    fn next_block_event(&mut self) -> Option<BlockEvent> {
        self.views
            .iter_mut()
            .filter_map(|view| view.exchange.as_mut())
            .find_map(|all| all.next_event())
    }
}

impl Blocks for SharedMemory {
    fn block_limits(&self) -> BlockLimits {
        // A block may be as long as its memory can be. This does not promise that memory of that
        // length exists.
        let bytes_max = usize::MAX >> 1;
        BlockLimits {
            channels: CHANNELS,
            receives_max: RECEIVES_MAX,
            sends_max: SENDS as usize,
            bytes_max,
        }
    }

    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let view = self.views.get_mut(from.view).ok_or(ErrorKind::Other)?;
        view.target(from.peer)?;
        let range = self.residence.block_range(into, length).ok_or(ErrorKind::OutOfRange)?;
        let exchange = view.exchange.as_mut().ok_or(ErrorKind::OutOfRange)?;
        exchange.post_receive(&view.membership, (from.peer, from.channel), range, token)
    }

    fn send(
        &mut self,
        to: Way,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let view = self.views.get_mut(to.view).ok_or(ErrorKind::Other)?;
        view.target(to.peer)?;
        let range = self.residence.block_range(source, length).ok_or(ErrorKind::OutOfRange)?;
        view.send_block((to.peer, to.channel), range, immediate, token)
    }

    fn close(&mut self, view: ViewId, channel: Channel) {
        if let Some(view) = self.views.get_mut(view)
            && let Some(exchange) = &mut view.exchange
        {
            exchange.close(&view.membership, channel);
            view.ring_sleepers();
        }
    }

    fn poll_block(&mut self) -> Option<BlockEvent> {
        let event = self.next_block_event();
        if event.is_some() {
            return event;
        }
        self.carry_blocks();
        self.next_block_event()
    }
}

impl HostBlocks for SharedMemory {
    type Store = SharedBlockStore;

    fn block_store(&self) -> SharedBlockStore {
        SharedBlockStore::new(&self.residence)
    }
}
