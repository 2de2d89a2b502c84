//! Blocks that come from one peer: the receives that are posted for them, and which of them each
//! piece goes into.
//!
//! # Invariants
//! - A piece has a place only if its block fits into the receive that is next on its channel, and
//!   it is what comes next of that block: all that is compared before a byte of it is stored.

use std::collections::VecDeque;
use std::sync::Arc;

use tramontane_core::fabric::{BlockEvent, Channel, Token, Way};
use tramontane_core::ids::ViewId;

use super::super::incoming::End;
use super::departures::Full;
use super::lanes::{Closed, Lanes};
use super::memory::BlockBytes;

/// Receives that may be posted for one peer on one channel.
pub(super) const RECEIVES_MAX: usize = 16;

/// A receive that is posted.
#[derive(Debug)]
pub(crate) struct Receive {
    pub(super) memory: Arc<BlockBytes>,
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) way: Way,
    pub(super) token: Token,
}

/// A block of which something has come.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    immediate: u32,
    length: usize,
    left: usize,
}

/// One channel.
#[derive(Debug)]
struct Lane {
    /// The oldest first: a block comes into that.
    receives: VecDeque<Receive>,
    arriving: Option<Arriving>,
}

impl Lane {
    fn new() -> Self {
        Self { receives: VecDeque::with_capacity(RECEIVES_MAX), arriving: None }
    }
}

/// What a peer says before a piece of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PieceHeader {
    pub(crate) view: ViewId,
    pub(crate) channel: Channel,
    /// Bytes of the piece.
    pub(crate) length: usize,
    /// Bytes that are still to come of the block, with those.
    pub(crate) left: usize,
    pub(crate) immediate: u32,
}

/// Where a piece goes.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) memory: Arc<BlockBytes>,
    pub(crate) offset: usize,
}

/// All blocks from one peer.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    lanes: Lanes<Lane>,
    /// By view.
    closed: Vec<(ViewId, Closed)>,
}

impl Arrivals {
    /// Takes note of the channels that were closed before the peer came.
    pub(crate) fn open(&mut self, view: ViewId, closed: Closed) {
        self.closed.retain(|(id, _)| *id != view);
        self.closed.push((view, closed));
    }

    /// Adds a receive whose range was checked.
    pub(crate) fn add(&mut self, receive: Receive) -> Result<(), Full> {
        let Way { view, channel, .. } = receive.way;
        let lane = self.lanes.get_or_make(view, channel, Lane::new);
        if lane.receives.len() == RECEIVES_MAX {
            return Err(Full);
        }
        lane.receives.push_back(receive);
        Ok(())
    }

    /// Where a piece goes; nowhere if its channel was closed.
    ///
    /// # Errors
    /// If nobody waits for it.
    pub(crate) fn begin(&mut self, piece: &PieceHeader) -> Result<Option<Place>, End> {
        let PieceHeader { view, channel, length, left, immediate } = *piece;
        if length > left || (length == 0 && left > 0) {
            return Err(End::Garbled("a piece of no block"));
        }
        if self.closed.iter().any(|(id, closed)| *id == view && closed.contains(channel)) {
            return Ok(None);
        }
        let unawaited = End::Garbled("a block that nobody waits for");
        let Some(lane) = self.lanes.get(view, channel) else { return Err(unawaited) };
        let Some(receive) = lane.receives.front() else { return Err(unawaited) };
        let block = match lane.arriving {
            Some(block) if (block.left, block.immediate) != (left, immediate) => {
                return Err(End::Garbled("a piece of another block"));
            }
            Some(block) => block,
            None if left > receive.length => {
                return Err(End::Garbled("a block longer than its receive"));
            }
            None => Arriving { immediate, length: left, left },
        };
        lane.arriving = Some(block);
        let offset = receive.offset + (block.length - block.left);
        Ok(Some(Place { memory: Arc::clone(&receive.memory), offset }))
    }

    /// A piece that had a place has come whole. What is to be told if its block has, too.
    pub(crate) fn finish(&mut self, piece: &PieceHeader) -> Option<BlockEvent> {
        let lane = self.lanes.get(piece.view, piece.channel)?;
        let block = lane.arriving.as_mut()?;
        block.left -= piece.length;
        if block.left > 0 {
            return None;
        }
        let Arriving { immediate, length, .. } = *block;
        lane.arriving = None;
        let Receive { way, token, .. } = lane.receives.pop_front()?;
        Some(BlockEvent::Received { way, token, immediate, length })
    }

    /// Ends a channel: what comes on it is dropped.
    pub(crate) fn close(&mut self, view: ViewId, channel: Channel) {
        self.lanes.close(view, channel);
        if let Some((_, closed)) = self.closed.iter_mut().find(|(id, _)| *id == view) {
            closed.insert(channel);
        }
    }

    /// Ends a view.
    pub(crate) fn retire(&mut self, view: ViewId) {
        self.lanes.retire(view);
        self.closed.retain(|(id, _)| *id != view);
    }

    /// Forgets everything: the peer is gone.
    pub(crate) fn clear(&mut self) {
        self.lanes.clear();
        self.closed.clear();
    }
}
