//! What follows the header of a write or of a piece of a block: where it goes, as far as it has come.

use std::sync::Arc;

use tramontane_core::fabric::Channel;
use tramontane_core::ids::{Rank, ViewId};

use super::blocks::{BlockBytes, PieceHeader};
use super::incoming::End;
use super::memory::Rows;

/// Where bytes go.
#[derive(Debug)]
pub(super) enum Target {
    /// To the reader's copy of the peer's row.
    Row { rows: Arc<Rows>, rank: Rank, offset: usize },
    /// To a receive.
    Block { memory: Arc<BlockBytes>, offset: usize },
    /// Nowhere: the view has ended, or the channel was closed.
    Nowhere,
}

/// A write, or a piece of a block, whose header was read.
#[derive(Debug)]
pub(super) struct Body {
    view: ViewId,
    target: Target,
    left: usize,
    /// If it is of a block.
    piece: Option<PieceHeader>,
}

impl Body {
    pub(super) const fn of_write(view: ViewId, target: Target, left: usize) -> Self {
        Self { view, target, left, piece: None }
    }

    pub(super) const fn of_piece(piece: PieceHeader, target: Target) -> Self {
        Self { view: piece.view, target, left: piece.length, piece: Some(piece) }
    }

    pub(super) const fn view(&self) -> ViewId {
        self.view
    }

    /// Whether it is of a block of this channel.
    pub(super) fn is_of(&self, view: ViewId, channel: Channel) -> bool {
        self.piece.is_some_and(|piece| (piece.view, piece.channel) == (view, channel))
    }

    /// The piece, if it is one that is stored.
    pub(super) fn piece(&self) -> Option<&PieceHeader> {
        self.piece.as_ref().filter(|_| self.is_stored())
    }

    /// Bytes that did not come yet.
    pub(super) const fn left(&self) -> usize {
        self.left
    }

    pub(super) const fn is_stored(&self) -> bool {
        !matches!(self.target, Target::Nowhere)
    }

    /// Whether it is read by cells, of which none must be seen half.
    pub(super) const fn has_cells(&self) -> bool {
        matches!(self.target, Target::Row { .. })
    }

    /// Stores nothing more.
    pub(super) fn drop_rest(&mut self) {
        self.target = Target::Nowhere;
    }

    /// How many of `count` bytes can be stored now.
    pub(super) fn whole(&self, count: usize) -> usize {
        if count >= self.left {
            return self.left;
        }
        match &self.target {
            // What follows the last border of a cell waits for the rest of its cell.
            Target::Row { offset, .. } => count.saturating_sub((offset + count) % 8),
            Target::Block { .. } | Target::Nowhere => count,
        }
    }

    /// How many bytes are missing to the next border of a cell, if `held` bytes wait. One, if there are no cells.
    pub(super) const fn to_border(&self, held: usize) -> usize {
        match &self.target {
            Target::Row { offset, .. } => 8 - (*offset + held) % 8,
            Target::Block { .. } | Target::Nowhere => 1,
        }
    }

    /// Where the next bytes go, if anywhere.
    pub(super) fn landing(&mut self, length: usize) -> Result<Option<&mut [u8]>, End> {
        match &self.target {
            Target::Row { rows, rank, offset } => {
                let outside = |_| End::Garbled("a write outside its row");
                rows.landing(*rank, *offset, length).map_err(outside).map(Some)
            }
            Target::Block { memory, offset } => {
                let outside = |_| End::Garbled("a block outside its receive");
                memory.landing(*offset, length).map_err(outside).map(Some)
            }
            Target::Nowhere => Ok(None),
        }
    }

    pub(super) fn store(&mut self, bytes: &[u8]) -> Result<(), End> {
        if let Some(landing) = self.landing(bytes.len())? {
            landing.copy_from_slice(bytes);
        }
        self.pass(bytes.len());
        Ok(())
    }

    /// So many bytes have come.
    pub(super) fn pass(&mut self, count: usize) {
        if let Target::Row { offset, .. } | Target::Block { offset, .. } = &mut self.target {
            *offset += count;
        }
        self.left -= count;
    }
}
