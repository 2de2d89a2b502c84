//! Blocks over TCP: frames like writes, on the same connections.
//!
//! | module | subject |
//! |---|---|
//! | `memory` | block memory, and the regions of a member |
//! | `channels` | what there is of each channel with one peer |
//! | `sending`, `receiving` | blocks that go to a peer, and those that come from it |
//!
//! # How a block travels
//! In pieces of 256 KiB, each straight from block memory into the socket, and from the socket into
//! the receive: nothing is copied in the process. With a key it is sealed from where it is, and
//! what comes is opened into a buffer and copied from there. Between two pieces go the lists of
//! writes that were posted meanwhile, and the pieces of other channels. What waits in the kernel
//! already is not passed.
//!
//! A piece says what of its block is still to come. Its receiver compares it with the receive that
//! is next on its channel, before it stores anything: what nobody waits for ends the connection.
//!
//! # Limits
//! For each peer and channel 16 receives and 16 blocks under way; more are `QueueFull`. `Sent` says
//! that the kernel, or the cipher, has all of the block, and nothing of the peer. What the cipher
//! has and the socket did not take goes with the next polls: a member polls on after it was told.

mod channels;
mod memory;
mod receiving;
mod sending;

use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Channel, ErrorKind, HostBlocks, Token, Way,
};
use tramontane_core::ids::ViewId;

pub(super) use channels::Closed;
pub use memory::{BlockBytes, BlockMemory, BlockStore, NoBlockMemory};
pub(super) use receiving::{BlockReceiving, PieceHeader, Place, Receive};
pub(super) use sending::{BlockSending, Full, SendingBlock};

use self::channels::CHANNELS;
use self::receiving::RECEIVES_MAX;
use self::sending::SENDS_MAX;
use super::connection::Connection;
use super::fabric::Tcp;
use super::frame::WRITE_MAX;
use super::send_queue::Sent;

impl From<Full> for ErrorKind {
    fn from(Full: Full) -> Self {
        Self::QueueFull
    }
}

impl HostBlocks for Tcp {
    type Store = BlockStore;

    fn block_store(&self) -> BlockStore {
        self.store.clone()
    }
}

impl Tcp {
    /// Whether a block may be sent or awaited on that channel, and by which connection.
    fn block_way(&mut self, way: Way) -> Result<&mut Connection, ErrorKind> {
        let view = self.views.iter().find(|open| open.id == way.view).ok_or(ErrorKind::Other)?;
        if way.channel.0 >= CHANNELS || view.closed.contains(way.channel) {
            return Err(ErrorKind::OutOfRange);
        }
        let connection = view.reach(way.peer, self.connections.get_mut())?;
        if !connection.is_ready(way.view) {
            return Err(ErrorKind::QueueFull);
        }
        self.events.check_block_room()?;
        Ok(connection)
    }

    /// The memory of a block.
    fn block_bytes(
        &self,
        area: Area,
        length: usize,
    ) -> Result<std::sync::Arc<BlockBytes>, ErrorKind> {
        let memory = self.store.of(area, length).filter(|_| length <= WRITE_MAX);
        memory.ok_or(ErrorKind::OutOfRange)
    }
}

impl Blocks for Tcp {
    fn block_limits(&self) -> BlockLimits {
        BlockLimits {
            channels: CHANNELS,
            receives_max: RECEIVES_MAX,
            sends_max: SENDS_MAX,
            bytes_max: WRITE_MAX,
        }
    }

    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let memory = self.block_bytes(into, length)?;
        let receive = Receive { memory, offset: into.offset, length, way: from, token };
        Ok(self.block_way(from)?.receive(receive)?)
    }

    fn send(
        &mut self,
        to: Way,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let memory = self.block_bytes(source, length)?;
        let block = SendingBlock { memory, offset: source.offset, left: length, immediate, token };
        let connection = self.block_way(to)?;
        if connection.is_over_there(to.view) {
            // As what is posted to its row.
            self.events.sent(Sent { way: to, token });
            return Ok(());
        }
        connection.send(to, block)?;
        self.flush_to(to.view, to.peer);
        Ok(())
    }

    fn close(&mut self, view: ViewId, channel: Channel) {
        let Some(open) = self.views.iter_mut().find(|open| open.id == view) else { return };
        open.closed.insert(channel);
        for connection in self.connections.get_mut().iter_mut() {
            connection.close_channel(view, channel);
        }
        self.events.forget_blocks(view, |on, _| on == channel);
    }

    fn poll_block(&mut self) -> Option<BlockEvent> {
        if self.events.has_no_block() {
            self.carry();
        }
        self.events.next_block()
    }
}
