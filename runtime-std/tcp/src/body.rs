//! The body of a write, of a piece of a block, or of an answer: its destination, and how much has
//! arrived.

use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::io::Errno;
use tramontane_core::fabric::Channel;
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::memory::BlockPages as _;

use super::blocks::{BlockBytes, PieceHeader};
use super::memory::Rows;
use super::regions::RegionMemory;
use super::stream_end::StreamEnd;

/// The connection's end if a peer's write is outside its row.
const OUTSIDE_ROW: StreamEnd = StreamEnd::Malformed("a write outside its row");

/// The connection's end if a peer's write is outside its region.
const OUTSIDE_REGION: StreamEnd = StreamEnd::Malformed("a write outside its region");

/// The connection's end if a peer's block is outside its receive.
const OUTSIDE_RECEIVE: StreamEnd = StreamEnd::Malformed("a block outside its receive");

/// The destination of bytes.
#[derive(Debug)]
pub(super) enum Target {
    /// The reader's copy of the peer's row.
    Row { rows: Rows, rank: Rank, offset: usize },
    /// A region of the reader.
    Region { memory: RegionMemory, offset: usize },
    /// To a receive.
    Block { memory: Arc<BlockBytes>, offset: usize },
    /// None: the view has ended, the channel was closed, or the right was revoked.
    Nowhere,
}

/// The kind of the bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    Write,
    Piece(PieceHeader),
    Answer,
}

/// A write, a piece of a block, or a piece of an answer, whose header was read.
#[derive(Debug)]
pub(super) struct Body {
    view: ViewId,
    target: Target,
    left: usize,
    content: Content,
}

impl Body {
    pub(super) const fn of_write(view: ViewId, target: Target, left: usize) -> Self {
        Self { view, target, left, content: Content::Write }
    }

    pub(super) const fn of_piece(piece: PieceHeader, target: Target) -> Self {
        Self { view: piece.view, target, left: piece.length, content: Content::Piece(piece) }
    }

    pub(super) const fn of_answer(view: ViewId, target: Target, left: usize) -> Self {
        Self { view, target, left, content: Content::Answer }
    }

    pub(super) const fn content(&self) -> &Content {
        &self.content
    }

    pub(super) const fn view(&self) -> ViewId {
        self.view
    }

    /// Returns whether the body belongs to a block of this channel.
    pub(super) fn is_of(&self, view: ViewId, channel: Channel) -> bool {
        matches!(&self.content, Content::Piece(piece)
            if (piece.view, piece.channel) == (view, channel))
    }

    /// Returns the number of bytes still to arrive.
    pub(super) const fn left(&self) -> usize {
        self.left
    }

    pub(super) const fn is_stored(&self) -> bool {
        !matches!(self.target, Target::Nowhere)
    }

    /// Returns whether the bytes are read as cells, which must never be seen half-written.
    pub(super) const fn has_cells(&self) -> bool {
        matches!(self.target, Target::Row { .. } | Target::Region { .. })
    }

    /// Discards the rest.
    pub(super) fn drop_rest(&mut self) {
        self.target = Target::Nowhere;
    }

    /// Returns the number of bytes, out of `count`, that can be stored now.
    pub(super) fn whole(&self, count: usize) -> usize {
        if count >= self.left {
            return self.left;
        }
        match &self.target {
            // Bytes after the last cell boundary must wait for the rest of their cell.
            Target::Row { offset, .. } | Target::Region { offset, .. } => {
                count.saturating_sub((offset + count) % 8)
            }
            Target::Block { .. } | Target::Nowhere => count,
        }
    }

    /// Returns the number of bytes missing to the next cell boundary if `held` bytes are waiting.
    /// Returns one if there are no cells.
    pub(super) const fn to_border(&self, held: usize) -> usize {
        match &self.target {
            Target::Row { offset, .. } | Target::Region { offset, .. } => 8 - (*offset + held) % 8,
            Target::Block { .. } | Target::Nowhere => 1,
        }
    }

    /// Returns the address for the next bytes, if they have a destination. At least `length` bytes
    /// can be written there.
    fn address(&self, length: usize) -> Result<Option<NonNull<u8>>, StreamEnd> {
        match &self.target {
            Target::Row { rows, rank, offset } => {
                rows.address(*rank, *offset, length).map_err(|_| OUTSIDE_ROW).map(Some)
            }
            Target::Region { memory, offset } => {
                memory.address(*offset, length).map_err(|_| OUTSIDE_REGION).map(Some)
            }
            Target::Block { memory, offset } => {
                memory.at(*offset, length).map_err(|_| OUTSIDE_RECEIVE).map(Some)
            }
            Target::Nowhere => Ok(None),
        }
    }

    /// Reads once from a socket: at most `length` bytes to their destination, and the bytes after
    /// them into a buffer. Reads nothing if the bytes have no destination. Returns the total number
    /// of bytes read.
    pub(super) fn read_from(
        &mut self,
        stream: &TcpStream,
        length: usize,
        follows: &mut [u8],
    ) -> Result<Option<rustix::io::Result<usize>>, StreamEnd> {
        let Some(address) = self.address(length)? else { return Ok(None) };
        let parts = [
            libc::iovec { iov_base: address.as_ptr().cast(), iov_len: length },
            libc::iovec { iov_base: follows.as_mut_ptr().cast(), iov_len: follows.len() },
        ];
        // SAFETY: both ranges can be written: the first by the check of `address`, and it lives as
        // long as the target, which is kept here; the second is borrowed. There is no reference to
        // the first anywhere, because rows and block memory consist of atomics.
        let count = unsafe { libc::readv(stream.as_raw_fd(), parts.as_ptr(), 2) };
        let Ok(count) = usize::try_from(count) else {
            let error = std::io::Error::last_os_error();
            return Ok(Some(Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))));
        };
        self.pass(count.min(length));
        Ok(Some(Ok(count)))
    }

    /// Stores the next bytes.
    pub(super) fn store(&mut self, bytes: &[u8]) -> Result<(), StreamEnd> {
        match &self.target {
            Target::Row { rows, rank, offset } => {
                rows.store(*rank, *offset, bytes).map_err(|_| OUTSIDE_ROW)?;
            }
            Target::Region { memory, offset } => {
                memory.store(*offset, bytes).map_err(|_| OUTSIDE_REGION)?;
            }
            Target::Block { memory, offset } => {
                memory.store(*offset, bytes).map_err(|_| OUTSIDE_RECEIVE)?;
            }
            Target::Nowhere => {}
        }
        self.pass(bytes.len());
        Ok(())
    }

    /// Notes that `count` bytes have arrived.
    fn pass(&mut self, count: usize) {
        if let Target::Row { offset, .. }
        | Target::Region { offset, .. }
        | Target::Block { offset, .. } = &mut self.target
        {
            *offset += count;
        }
        self.left -= count;
    }
}
