//! The traffic from one peer, and its destinations.
//!
//! # Invariants
//! - A write is stored in address order, and each aligned group of 8 bytes is stored all at once,
//!   so that no cell is ever seen half-written. The first bytes of a group wait until the rest has
//!   arrived.
//! - Nothing is stored before its frame has been checked against the reader's own state. This
//!   requires a view that is open at both ends and, in that view, the peer's own row and a range
//!   inside it, a receive that waits for the block, a region to which the peer may write, or a read
//!   that waits for the answer.

use std::net::TcpStream;
use std::ops::Range;

use rustix::io::ioctl_fionread;
use tramontane_control::Cipher;
use tramontane_core::fabric::{Area, Channel, Region};
use tramontane_core::ids::ViewId;

use super::blocks::{BlockReceiving, PieceHeader, PieceTarget};
use super::body::{Body, Content, Target};
use super::frame::{Decoded, Frame};
use super::landing::Landings;
use super::notice::Notice;
use super::regions::{PeerRegions, Right};
use super::stream_end::StreamEnd;

mod sealed;

use sealed::SEALED_READ_MAX;

/// Number of bytes per read while frames are short.
const READ_MAX: usize = 128 << 10;

/// Number of bytes per read while frames are long: enough for the next header, and little that
/// would be copied.
const READ_MIN: usize = 1 << 10;

/// The minimum number of missing bytes for which a write is read directly to its destination,
/// without a copy.
const DIRECT_MIN: usize = 8 << 10;

/// The number of bytes that one call reads from one peer before the other peers get their turn.
const TURN_BYTES: usize = 1 << 20;

/// The stream from one peer.
#[derive(Debug)]
pub(super) struct Incoming {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    body: Option<Body>,
    /// Whether the last write was long.
    is_long: bool,
    pub(super) landings: Landings,
    pub(super) block_receiving: BlockReceiving,
    pub(super) regions: PeerRegions,
    /// The received records that have not been opened yet, if there is a cipher. They are in the
    /// buffer, after the opened bytes.
    sealed: Range<usize>,
}

impl Incoming {
    pub(super) fn new(is_keyed: bool) -> Self {
        Self {
            buffer: vec![0; if is_keyed { SEALED_READ_MAX } else { READ_MAX }].into(),
            start: 0,
            end: 0,
            body: None,
            is_long: false,
            landings: Landings::default(),
            block_receiving: BlockReceiving::default(),
            regions: PeerRegions::default(),
            sealed: 0..0,
        }
    }

    /// Ends a view. Nothing more of it is stored. Returns true if the peer must be informed.
    pub(super) fn retire(&mut self, view: ViewId) -> bool {
        self.block_receiving.retire(view);
        self.regions.retire(view);
        if let Some(body) = self.body.as_mut().filter(|body| body.view() == view) {
            body.drop_rest();
        }
        self.landings.retire(view)
    }

    /// Revokes a right. Nothing more from the peer is stored in that region. Returns true if the
    /// peer had the right.
    pub(super) fn take_back(&mut self, view: ViewId, region: Region) -> bool {
        let had = self.regions.take_back(view, region);
        let is_under_way = self.regions.coming.drop_to(view, Some(region));
        if let Some(body) = self.body.as_mut().filter(|_| is_under_way) {
            body.drop_rest();
        }
        had
    }

    /// Ends a channel. No more of its blocks are stored.
    pub(super) fn close(&mut self, view: ViewId, channel: Channel) {
        self.block_receiving.close(view, channel);
        if let Some(body) = self.body.as_mut().filter(|body| body.is_of(view, channel)) {
            body.drop_rest();
        }
    }

    /// Forgets partial data and its memory, because the peer has been lost, and its connection
    /// never returns.
    pub(super) fn clear(&mut self) {
        self.block_receiving.clear();
        self.regions.clear();
        self.body = None;
        (self.buffer, self.start, self.end) = (Box::default(), 0, 0);
        self.sealed = 0..0;
    }

    /// Takes bytes as if they had arrived unencrypted.
    #[cfg(any(test, fuzzing))]
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        mut notify: impl FnMut(Notice),
    ) -> Result<(), StreamEnd> {
        while !bytes.is_empty() {
            let count = bytes.len().min(self.room());
            self.buffer[self.end..self.end + count].copy_from_slice(&bytes[..count]);
            (self.end, bytes) = (self.end + count, &bytes[count..]);
            self.understand(&mut notify)?;
            self.move_to_front();
        }
        Ok(())
    }

    /// Reads and stores what has arrived, within limits. Returns true if there may be more now.
    pub(super) fn read(
        &mut self,
        stream: &TcpStream,
        mut cipher: Option<&mut Cipher>,
        is_hung_up: bool,
        mut notify: impl FnMut(Notice),
    ) -> Result<bool, StreamEnd> {
        let mut total = 0;
        while total < TURN_BYTES {
            let (count, is_drained) = match cipher.as_deref_mut() {
                Some(cipher) => self.read_sealed(stream, cipher, &mut notify)?,
                None => {
                    let read = self.read_clear(stream, is_hung_up, &mut notify)?;
                    self.understand(&mut notify)?;
                    self.move_to_front();
                    read
                }
            };
            total += count;
            if is_drained && !is_hung_up {
                return Ok(false);
            }
            if count == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads unencrypted bytes once. Returns the number of bytes that arrived, and whether there
    /// are no more.
    fn read_clear(
        &mut self,
        stream: &TcpStream,
        is_hung_up: bool,
        notify: &mut impl FnMut(Notice),
    ) -> Result<(usize, bool), StreamEnd> {
        if self.start == self.end && !is_hung_up {
            (self.start, self.end) = (0, 0);
            if let Some(read) = self.read_direct(stream, notify)? {
                return Ok(read);
            }
        }
        let room = self.room();
        let into = self.buffer.get_mut(self.end..self.end + room).unwrap_or_default();
        let Some(count) = received(rustix::io::read(stream, into))? else { return Ok((0, true)) };
        self.end += count;
        Ok((count, count < room))
    }

    /// Returns the number of bytes to read into the buffer.
    fn room(&self) -> usize {
        let held = self.end - self.start;
        let room = match &self.body {
            // Part of a cell is waiting. After the rest of it has arrived, the buffer is empty
            // again, and further reads go directly to the row.
            Some(body) if held > 0 && body.is_stored() && body.left() >= DIRECT_MIN => {
                body.to_border(held)
            }
            // Dropped bytes go through the buffer.
            Some(body) if !body.is_stored() => READ_MAX,
            _ if self.is_long => READ_MIN,
            _ => READ_MAX,
        };
        room.min(self.buffer.len() - self.end)
    }

    /// Reads the rest of a long write or block to its destination, and a little of what follows
    /// into the buffer; for a write, also a partial cell. Nothing may be left in the kernel, which
    /// would keep a whole segment's memory for one byte of it, and eventually close its window.
    fn read_direct(
        &mut self,
        stream: &TcpStream,
        notify: &mut impl FnMut(Notice),
    ) -> Result<Option<(usize, bool)>, StreamEnd> {
        let Some(body) =
            self.body.as_mut().filter(|body| body.is_stored() && body.left() >= DIRECT_MIN)
        else {
            return Ok(None);
        };
        let there = if body.has_cells() {
            // Queried first, because a read must not end in the middle of a cell.
            let there = ioctl_fionread(stream).map_err(|errno| StreamEnd::Broken(errno.into()))?;
            usize::try_from(there).unwrap_or(usize::MAX)
        } else {
            body.left()
        };
        if there == 0 {
            return Ok(Some((0, true)));
        }
        let length = body.whole(there);
        let follows = if length == body.left() { READ_MIN } else { there - length };
        let Some(read) = body.read_from(stream, length, &mut self.buffer[..follows])? else {
            return Ok(None);
        };
        let Some(count) = received(read)? else { return Ok(Some((0, true))) };
        self.end = count - count.min(length);
        self.finish(notify);
        Ok(Some((count, count < length + follows)))
    }

    /// If the write or piece in flight is complete, prepares for the next frame.
    fn finish(&mut self, notify: &mut impl FnMut(Notice)) -> bool {
        let Some(body) = self.body.take_if(|body| body.left() == 0) else { return false };
        match body.content() {
            Content::Write => self.regions.coming.go_on(),
            Content::Answer => {
                self.regions.reads.finish().map(Notice::Completed).into_iter().for_each(notify);
            }
            Content::Piece(piece) if body.is_stored() => {
                self.block_receiving.finish(piece).map(Notice::Block).into_iter().for_each(notify);
            }
            Content::Piece(_) => {}
        }
        true
    }

    /// Processes everything in the buffer that is complete. An incomplete header or cell stays.
    fn understand(&mut self, notify: &mut impl FnMut(Notice)) -> Result<(), StreamEnd> {
        loop {
            let bytes = &self.buffer[self.start..self.end];
            if let Some(body) = &mut self.body {
                let count = body.whole(bytes.len());
                body.store(&bytes[..count])?;
                self.start += count;
                if !self.finish(notify) {
                    break;
                }
                continue;
            }
            let frame = match Frame::decode(bytes) {
                Decoded::Frame(frame) => frame,
                Decoded::Short => break,
                Decoded::Nonsense => {
                    return Err(StreamEnd::Malformed("a frame that no member sends"));
                }
            };
            self.start += frame.length();
            self.take(frame, notify)?;
        }
        Ok(())
    }

    /// Makes room in the buffer after the bytes that could not be processed.
    fn move_to_front(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }

    fn take(&mut self, frame: Frame, notify: &mut impl FnMut(Notice)) -> Result<(), StreamEnd> {
        if self.regions.coming.coming().is_some() && !matches!(frame, Frame::Write { .. }) {
            return Err(StreamEnd::Malformed("a list that does not continue"));
        }
        let Self { landings, regions, .. } = self;
        match frame {
            Frame::Write { view, region, offset, length } => {
                self.take_write(view, region, offset, length)?;
            }
            Frame::Open { view, row_bytes, digest } => {
                if let Some(rank) = landings.take_open(view, row_bytes, digest)? {
                    notify(Notice::Ready(view, rank));
                }
            }
            Frame::Block { view, channel, length, left, immediate } => {
                self.take_piece(view, channel, (length, left), immediate)?;
            }
            Frame::Wake => notify(Notice::Rung),
            Frame::Leave => notify(Notice::Left),
            Frame::Cut => notify(Notice::Denied),
            Frame::List { view, region, writes, right } => {
                regions.take_list((view, region), (writes, right), landings)?;
            }
            Frame::Taken { lists } => {
                regions.unconfirmed.confirm(lists, |token| notify(Notice::Completed(token)))?;
            }
            Frame::Right { view, region, right } => {
                regions.take_right((view, region), Right::new(right), landings, notify)?;
            }
            Frame::Region { region, bytes } => regions.take_region(region, bytes)?,
            Frame::Close { view } => {
                regions.end_there(view, landings, notify);
                landings.take_close(view)?;
                notify(Notice::Ended(view));
            }
            Frame::Closed { view } => landings.take_closed(view)?,
            Frame::Read { view, region, offset, length } => {
                let (offset, length) = range(offset, length)?;
                let from = Area { region, offset };
                notify(Notice::Asked(regions.take_read(view, from, length, landings)?));
            }
            Frame::Answer { view, region, length, left } => {
                let (_, length) = range(0, length)?;
                let target = regions.take_answer(view, region, (length, left))?;
                self.is_long = length >= DIRECT_MIN;
                self.body = Some(Body::of_answer(view, target, length));
            }
        }
        Ok(())
    }

    fn take_write(
        &mut self,
        view: ViewId,
        region: Region,
        offset: u64,
        length: u32,
    ) -> Result<(), StreamEnd> {
        let (offset, length) = range(offset, length)?;
        let to = Area { region, offset };
        let target = self.regions.take_write(view, to, length, &mut self.landings)?;
        self.is_long = length >= DIRECT_MIN;
        self.body = Some(Body::of_write(view, target, length));
        Ok(())
    }

    fn take_piece(
        &mut self,
        view: ViewId,
        channel: Channel,
        (length, left): (u32, u32),
        immediate: u32,
    ) -> Result<(), StreamEnd> {
        let (Ok(length), Ok(left)) = (usize::try_from(length), usize::try_from(left)) else {
            return Err(StreamEnd::Malformed("a block longer than memory"));
        };
        let piece = PieceHeader { view, channel, length, left, immediate };
        let place =
            if self.landings.takes(view)? { self.block_receiving.begin(&piece)? } else { None };
        let target = match place {
            Some(PieceTarget { memory, offset }) => Target::Block { memory, offset },
            None => Target::Nowhere,
        };
        self.is_long = length >= DIRECT_MIN;
        self.body = Some(Body::of_piece(piece, target));
        Ok(())
    }
}

/// Converts a range to this machine's integers.
fn range(offset: u64, length: u32) -> Result<(usize, usize), StreamEnd> {
    match (usize::try_from(offset), usize::try_from(length)) {
        (Ok(offset), Ok(length)) => Ok((offset, length)),
        _ => Err(StreamEnd::Malformed("a range longer than memory")),
    }
}

/// Returns the number of bytes that arrived, or `None` if there are none now.
fn received(read: rustix::io::Result<usize>) -> Result<Option<usize>, StreamEnd> {
    use rustix::io::Errno;
    match read {
        Ok(0) => Err(StreamEnd::Closed),
        Ok(count) => Ok(Some(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(errno) => Err(StreamEnd::Broken(errno.into())),
    }
}
