//! Blocks from one peer: the receives posted for them, and the receive that each piece goes into.
//!
//! # Invariants
//! - A piece is stored only if its block fits into the next receive on its channel, and if it is
//!   the next piece of that block. All of that is checked before a byte of it is stored.

use std::collections::VecDeque;
use std::sync::Arc;

use tramontane_core::fabric::{BlockEvent, Channel, Token, Way};
use tramontane_core::ids::ViewId;

use super::super::stream_end::StreamEnd;
use super::channels::{ChannelTable, Closed};
use super::memory::BlockBytes;
use super::sending::Full;

/// Largest number of receives posted for one peer on one channel.
pub(super) const RECEIVES_MAX: usize = 16;

/// A posted receive.
#[derive(Debug)]
pub(crate) struct Receive {
    pub(super) memory: Arc<BlockBytes>,
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) way: Way,
    pub(super) token: Token,
}

/// A block that was partly received.
#[derive(Clone, Copy, Debug)]
struct ReceivingBlock {
    immediate: u32,
    length: usize,
    left: usize,
}

/// One channel.
#[derive(Debug)]
struct ChannelState {
    /// Oldest first: the next block goes into the first one.
    receives: VecDeque<Receive>,
    arriving: Option<ReceivingBlock>,
}

impl ChannelState {
    fn new() -> Self {
        Self { receives: VecDeque::with_capacity(RECEIVES_MAX), arriving: None }
    }
}

/// The header of a piece of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PieceHeader {
    pub(crate) view: ViewId,
    pub(crate) channel: Channel,
    /// Bytes of the piece.
    pub(crate) length: usize,
    /// Bytes of the block still to come, including this piece.
    pub(crate) left: usize,
    pub(crate) immediate: u32,
}

/// The destination of a piece.
#[derive(Debug)]
pub(crate) struct PieceTarget {
    pub(crate) memory: Arc<BlockBytes>,
    pub(crate) offset: usize,
}

/// All blocks from one peer.
#[derive(Debug, Default)]
pub(crate) struct BlockReceiving {
    channels: ChannelTable<ChannelState>,
    /// By view.
    closed: Vec<(ViewId, Closed)>,
}

impl BlockReceiving {
    /// Notes the channels that were closed before the peer arrived.
    pub(crate) fn open(&mut self, view: ViewId, closed: Closed) {
        self.closed.retain(|(id, _)| *id != view);
        self.closed.push((view, closed));
    }

    /// Adds a receive whose range was checked.
    pub(crate) fn add(&mut self, receive: Receive) -> Result<(), Full> {
        let Way { view, channel, .. } = receive.way;
        let channel_state = self.channels.get_or_make(view, channel, ChannelState::new);
        if channel_state.receives.len() == RECEIVES_MAX {
            return Err(Full);
        }
        channel_state.receives.push_back(receive);
        Ok(())
    }

    /// Returns the destination of a piece, or `None` if its channel was closed.
    ///
    /// # Errors
    /// If there is no receive for the piece.
    pub(crate) fn begin(&mut self, piece: &PieceHeader) -> Result<Option<PieceTarget>, StreamEnd> {
        let PieceHeader { view, channel, length, left, immediate } = *piece;
        if length > left || (length == 0 && left > 0) {
            return Err(StreamEnd::Malformed("a piece without a block"));
        }
        if self.closed.iter().any(|(id, closed)| *id == view && closed.contains(channel)) {
            return Ok(None);
        }
        let unawaited = StreamEnd::Malformed("a block without a receive");
        let Some(channel_state) = self.channels.get(view, channel) else { return Err(unawaited) };
        let Some(receive) = channel_state.receives.front() else { return Err(unawaited) };
        let block = match channel_state.arriving {
            Some(block) if (block.left, block.immediate) != (left, immediate) => {
                return Err(StreamEnd::Malformed("a piece of another block"));
            }
            Some(block) => block,
            None if left > receive.length => {
                return Err(StreamEnd::Malformed("a block longer than its receive"));
            }
            None => ReceivingBlock { immediate, length: left, left },
        };
        channel_state.arriving = Some(block);
        let offset = receive.offset + (block.length - block.left);
        Ok(Some(PieceTarget { memory: Arc::clone(&receive.memory), offset }))
    }

    /// Notes that a stored piece is complete. Returns an event if its block is complete too.
    pub(crate) fn finish(&mut self, piece: &PieceHeader) -> Option<BlockEvent> {
        let channel_state = self.channels.get(piece.view, piece.channel)?;
        let block = channel_state.arriving.as_mut()?;
        block.left -= piece.length;
        if block.left > 0 {
            return None;
        }
        let ReceivingBlock { immediate, length, .. } = *block;
        channel_state.arriving = None;
        let Receive { way, token, .. } = channel_state.receives.pop_front()?;
        Some(BlockEvent::Received { way, token, immediate, length })
    }

    /// Ends a channel: further blocks on it are dropped.
    pub(crate) fn close(&mut self, view: ViewId, channel: Channel) {
        self.channels.close(view, channel);
        if let Some((_, closed)) = self.closed.iter_mut().find(|(id, _)| *id == view) {
            closed.insert(channel);
        }
    }

    /// Ends a view.
    pub(crate) fn retire(&mut self, view: ViewId) {
        self.channels.retire(view);
        self.closed.retain(|(id, _)| *id != view);
    }

    /// Forgets everything, because the peer is gone.
    pub(crate) fn clear(&mut self) {
        self.channels.clear();
        self.closed.clear();
    }
}
