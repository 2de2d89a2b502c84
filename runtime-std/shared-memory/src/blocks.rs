//! `Blocks` over shared memory: the receiver copies, straight from the sender's memory into its
//! own, once.
//!
//! A send is an entry in the sender's block queues, and a ring if the peer sleeps. The peer takes
//! entries in, finds their receives, copies a piece, and answers; so one poll stays short, and a
//! block that is long takes several.
//!
//! No allocation or system call is on the way of a block, and no lock but that of the list of
//! memories, for a look at its memory; but for the wake of a sleeper, the
//! first receive of a channel from a peer, and the first block from a memory to a peer, which is
//! sent the memory's descriptor and maps it.

use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Channel, ErrorKind, HostBlocks, Token, Way,
};
use tramontane_core::ids::ViewId;

use super::block_memory::BlockStore;
use super::block_queues::{CHANNELS, SENDS};
use super::fabric::SharedMemory;
use super::receiving::RECEIVES_MAX;

impl SharedMemory {
    /// Does what a [`poll_block`](Blocks::poll_block) does that finds nothing to tell: looks at
    /// what peers say, and copies a piece. What became of it waits for `poll_block`.
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
        // A block is as long as its memory may be; that there is one of such a length is not said.
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
    type Store = BlockStore;

    fn block_store(&self) -> BlockStore {
        BlockStore::new(&self.residence)
    }
}
