//! Blocks over TCP: frames like writes, on the same connections.
//!
//! | module | subject |
//! |---|---|
//! | `memory` | block memory, and the regions of a member |
//! | `channels` | the state of each channel with one peer |
//! | `sending`, `receiving` | blocks to a peer, and blocks from it |
//!
//! # How a block travels
//! Blocks are sent in pieces of 256 KiB, each directly from block memory to the socket, and from
//! the socket to the receive: nothing is copied in the process. With a key, a piece is encrypted
//! from its place, and received bytes are decrypted into a buffer and copied from there. Lists of
//! writes posted in the meantime, and pieces of other channels, go between two pieces. They do not
//! overtake what is already in the kernel.
//!
//! A piece states how much of its block is still to come. Its receiver checks this against the next
//! receive on its channel before it stores anything. A piece without a receive ends the connection.
//!
//! # Limits
//! Each peer and channel has up to 16 receives and 16 blocks in flight; more are `QueueFull`.
//! `Sent` means that the kernel, or the cipher, has the whole block, and says nothing about the
//! peer. Encrypted bytes that the socket did not accept are sent by the next polls, so a member
//! must continue polling after the event.

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
pub(super) use receiving::{BlockReceiving, PieceHeader, PieceTarget, Receive};
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
    /// Checks whether a block may be sent or awaited on a channel, and returns the connection.
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

    /// Returns the memory of a block.
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
            // A block is treated like a post to the peer's row.
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
