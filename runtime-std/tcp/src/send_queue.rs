//! The queue of everything that is waiting to be sent to one peer.
//!
//! At most one list of writes waits here for the socket, together with the few frames owed to the
//! peer. Until the list has been sent, the next one is `QueueFull`, and its caller's next accepted
//! post covers everything that has changed in the meantime. So a slow peer costs no memory, and
//! receives the newest state of what it has missed.
//!
//! A heartbeat does not wait for the list (`overtaking`). Otherwise, peers would remove a member
//! that sends a window of long messages over a slow link.
//!
//! While the socket has room, short lists whose caller has more to post are held back, within a
//! limit, and are sent in one system call together with the caller's last list.
//!
//! Headers, guards and short content are copied into `staged` during the call. Long content stays
//! in place, and the kernel takes it from there. With a cipher, both are copied into records, which
//! are encrypted in place (`sealed`).
//!
//! Answers to reads of regions, and blocks, are sent when no list is waiting, one piece at a time,
//! so that a list waits for at most one piece.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::TcpStream;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use tramontane_control::Cipher;
use tramontane_core::fabric::{Kind, Region, Token, WRITES_MAX, Way, Write};
use tramontane_core::ids::ViewId;
use tramontane_core::memory::OutOfRow;

use super::blocks::BlockSending;
use super::frame::{Frame, HEADER};
use super::lent_content::{LentContent, Source};
use super::memory::Rows;
use super::regions::{AskedReads, OwnRegions};
use super::stream_end::StreamEnd;

mod overtaking;
mod sealed;

use overtaking::Overtakable;
use sealed::SealedRecords;

/// The maximum number of bytes in a guard, which is copied during the call.
pub(super) const GUARD_MAX: usize = 1024;

/// The size in bytes up to which content is copied too, because that costs less than another range
/// for the kernel.
const COPIED_MAX: usize = 512;

/// The number of staged bytes up to which lists are held back: a window of short messages.
const HELD_BYTES_MAX: usize = 32 << 10;

/// Room for the lists held back, one more list, and the frames owed to the peer.
const STAGED_MAX: usize = HELD_BYTES_MAX + WRITES_MAX * (HEADER + GUARD_MAX) + 64 * HEADER;

/// The maximum number of waiting bytes before an answer is added.
const ANSWERS_MAX: usize = 1 << 20;

/// The number of ranges in one system call: those of a list and of a piece.
const SLICES_MAX: usize = 2 * WRITES_MAX + 4;

/// The number of bytes that one call sends before other peers get their turn, and before received
/// data is read.
const TURN_BYTES: usize = 1 << 20;

/// A block that has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) way: Way,
    pub(super) token: Token,
}

/// A checked list, and the location of its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'l> {
    pub(super) view: ViewId,
    pub(super) rows: &'l Rows,
    pub(super) regions: &'l OwnRegions,
    pub(super) writes: &'l [Write],
}

impl List<'_> {
    /// Returns the memory from which a write comes.
    fn source(&self, region: Region) -> Result<Source, OutOfRow> {
        match self.rows.owner_of(region) {
            Some(owner) => Ok(Source::Row(self.rows.clone(), owner)),
            None => self.regions.get(region).cloned().map(Source::Region).ok_or(OutOfRow),
        }
    }
}

/// A part of the stream.
#[derive(Debug)]
enum Piece {
    /// This number of staged bytes.
    Staged(usize),
    /// Content that is sent directly from memory, without staging.
    Lent(LentContent),
    /// The unsent content of a view that has ended, copied when it ended; or a write that overtakes
    /// others, with its header.
    Kept { bytes: Box<[u8]>, from: usize },
}

/// The queue to one peer.
#[derive(Debug)]
pub(super) struct SendQueue {
    staged: Vec<u8>,
    /// The number of staged bytes that have already been sent.
    gone: usize,
    pieces: VecDeque<Piece>,
    /// Whether the lists wait for their caller's next list, and not for the socket.
    is_held_back: bool,
    /// Whether a wakeup is owed, which is sent once the queue is empty.
    wake_owed: bool,
    /// The number of lists that this end has finished, if it is owed to the peer. It goes with the
    /// next frames.
    taken_owed: Option<u64>,
    pub(super) asked: AskedReads,
    /// The number of pieces at the front that belong to an answer. A list may wait after them.
    answer_pieces: usize,
    pub(super) block_sending: BlockSending,
    overtakable: Overtakable,
    sealed: Option<SealedRecords>,
}

impl SendQueue {
    pub(super) fn new(is_keyed: bool) -> Self {
        Self {
            staged: Vec::with_capacity(STAGED_MAX),
            gone: 0,
            pieces: VecDeque::with_capacity(4 * WRITES_MAX),
            is_held_back: false,
            wake_owed: false,
            taken_owed: None,
            asked: AskedReads::default(),
            answer_pieces: 0,
            block_sending: BlockSending::new(is_keyed),
            overtakable: Overtakable::default(),
            sealed: is_keyed.then(SealedRecords::new),
        }
    }

    /// Returns whether anything is waiting.
    pub(super) fn is_pending(&self) -> bool {
        let is_sealed = self.sealed.as_ref().is_some_and(SealedRecords::is_pending);
        let is_owed = self.wake_owed || self.taken_owed.is_some() || self.asked.is_pending();
        !self.pieces.is_empty() || is_owed || is_sealed || self.block_sending.is_pending()
    }

    /// Returns whether a list or a frame is waiting for the socket, so that there is no room for
    /// another list.
    pub(super) fn is_full(&self) -> bool {
        self.pieces.len() > self.answer_pieces && !self.is_held_back
    }

    /// Holds back what is waiting until the next flush, if all of it is short. Returns whether it
    /// is. The next list may then be added without a flush.
    pub(super) fn hold_back(&mut self) -> bool {
        let is_copied = matches!(self.pieces.make_contiguous(), [Piece::Staged(_)]);
        self.is_held_back = is_copied && self.staged.len() <= HELD_BYTES_MAX;
        self.is_held_back
    }

    /// Adds a frame without content, after the owed number of lists.
    pub(super) fn push_frame(&mut self, frame: Frame) {
        self.push_taken();
        self.stage(&frame.encode()[..frame.length()]);
    }

    /// Adds a frame that answers a frame from the peer.
    ///
    /// # Errors
    /// Fails if the peer has been sending for a long time without reading the answers.
    pub(super) fn answer(&mut self, frame: Frame) -> Result<(), StreamEnd> {
        if self.staged.len() > ANSWERS_MAX {
            return Err(StreamEnd::Malformed("more requests than it reads answers for"));
        }
        self.push_frame(frame);
        Ok(())
    }

    fn push_taken(&mut self) {
        if let Some(lists) = self.taken_owed.take() {
            let frame = Frame::Taken { lists };
            self.stage(&frame.encode()[..frame.length()]);
        }
    }

    /// Records that the peer is owed the number of lists that this end has finished.
    pub(super) fn owe_taken(&mut self, lists: u64) {
        self.taken_owed = Some(lists);
    }

    /// Records that the peer is owed a wakeup. Several owed wakeups become one.
    pub(super) fn owe_wake(&mut self) {
        self.wake_owed = true;
    }

    /// Adds a list. The peer counts the writes of a list that it confirms.
    pub(super) fn add(&mut self, list: &List<'_>, is_confirmed: bool) -> Result<(), OutOfRow> {
        self.overtakable.note(list, is_confirmed);
        for write in list.writes {
            let Write { source, kind, .. } = *write;
            let memory = list.source(source.region)?;
            if kind == Kind::Guard || write.length <= COPIED_MAX {
                self.push_frame(write_frame(list.view, write)?);
                self.stage(memory.content(source.offset, write.length)?);
                continue;
            }
            for part in overtaking::parts(write, is_confirmed) {
                self.push_frame(write_frame(list.view, &part)?);
                let content = LentContent::new(memory.clone(), part.source.offset, part.length)?;
                self.pieces.push_back(Piece::Lent(content));
            }
        }
        Ok(())
    }

    fn stage(&mut self, bytes: &[u8]) {
        self.staged.extend_from_slice(bytes);
        match self.pieces.back_mut() {
            Some(Piece::Staged(count)) => *count += bytes.len(),
            _ => self.pieces.push_back(Piece::Staged(bytes.len())),
        }
    }

    /// Sends as much as the socket accepts now, within limits, and calls `gone` for each sent
    /// block. Returns false if the socket is full.
    ///
    /// # Errors
    /// Fails with the socket's error if the socket will accept nothing more.
    pub(super) fn flush(
        &mut self,
        stream: &TcpStream,
        cipher: Option<&mut Cipher>,
        gone: impl FnMut(Sent),
    ) -> io::Result<bool> {
        self.is_held_back = false;
        let has_room = match cipher {
            None => self.flush_clear(stream, gone),
            Some(cipher) => self.flush_sealed(stream, cipher, gone),
        };
        match has_room {
            Ok(has_room) => Ok(has_room),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn flush_clear(
        &mut self,
        stream: &TcpStream,
        mut gone: impl FnMut(Sent),
    ) -> Result<bool, Errno> {
        let mut total = 0;
        while total < TURN_BYTES {
            self.begin_what_waits();
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let (count, bytes) = self.slices(&mut slices).ok_or(Errno::FAULT)?;
            if bytes == 0 {
                self.take(0, &mut gone);
                return Ok(true);
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let sent =
                sendmsg(stream, &slices[..count], &mut SendAncillaryBuffer::default(), flags)?;
            self.take(sent, &mut gone);
            if sent < bytes {
                return Ok(false);
            }
            total += sent;
        }
        Ok(true)
    }

    /// An owed wakeup is sent after the lists. An answer or a block continues when nothing else is
    /// waiting, and a piece of a block that has begun is sent first.
    fn begin_what_waits(&mut self) {
        if !self.pieces.is_empty() {
            return;
        }
        self.push_taken();
        if std::mem::take(&mut self.wake_owed) {
            self.push_frame(Frame::Wake);
        } else if let Some((frame, memory, offset, length)) = self.asked.next_piece() {
            self.push_frame(frame);
            // The range is valid, because it was when the read was requested.
            let content = LentContent::new(Source::Region(memory), offset, length);
            self.pieces.extend(content.ok().map(Piece::Lent));
            self.answer_pieces = self.pieces.len();
        } else if self.pieces.is_empty() {
            self.block_sending.begin();
        }
    }

    /// Fills in the next bytes as ranges. Returns the number of ranges, and the total number of
    /// bytes.
    fn slices<'s>(&'s self, slices: &mut [IoSlice<'s>; SLICES_MAX]) -> Option<(usize, usize)> {
        let (mut count, mut bytes, mut staged) = (0, 0, self.gone);
        for part in self.block_sending.rest()?.into_iter().filter(|part| !part.is_empty()) {
            *slices.get_mut(count)? = IoSlice::new(part);
            count += 1;
            bytes += part.len();
        }
        for piece in &self.pieces {
            let parts = match piece {
                Piece::Staged(length) => {
                    staged += length;
                    [self.staged.get(staged - length..staged)?, &[]]
                }
                Piece::Lent(lent) => lent.parts()?,
                Piece::Kept { bytes, from } => [bytes.get(*from..)?, &[]],
            };
            for part in parts.into_iter().filter(|part| !part.is_empty()) {
                let Some(slice) = slices.get_mut(count) else { return Some((count, bytes)) };
                *slice = IoSlice::new(part);
                count += 1;
                bytes += part.len();
            }
        }
        Some((count, bytes))
    }

    /// Forgets the first `count` bytes, and everything that ends with them.
    fn take(&mut self, count: usize, gone: &mut impl FnMut(Sent)) {
        let sent = |way, token| gone(Sent { way, token });
        let Some(mut left) = self.block_sending.take(count, sent) else { return };
        while let Some(piece) = self.pieces.front_mut() {
            let is_done = match piece {
                Piece::Staged(length) => {
                    let part = left.min(*length);
                    self.gone += part;
                    *length -= part;
                    left -= part;
                    *length == 0
                }
                Piece::Lent(lent) => {
                    let part = left.min(lent.length);
                    // The range was valid when it was added.
                    let _ = lent.pass(part);
                    left -= part;
                    lent.length == 0
                }
                Piece::Kept { bytes, from } => {
                    let part = left.min(bytes.len() - *from);
                    *from += part;
                    left -= part;
                    *from == bytes.len()
                }
            };
            if !is_done {
                return;
            }
            self.pieces.pop_front();
            self.answer_pieces = self.answer_pieces.saturating_sub(1);
        }
        self.staged.clear();
        self.gone = 0;
    }

    /// Stops reading a view's row. If part of a list has been sent, copies the rest, so that the
    /// stream stays intact.
    pub(super) fn keep(&mut self, ended: &Rows) {
        for piece in &mut self.pieces {
            if let Piece::Lent(lent) = piece
                && lent.source.is_of(ended)
            {
                let bytes = lent.parts().map(|parts| parts.concat().into()).unwrap_or_default();
                *piece = Piece::Kept { bytes, from: 0 };
            }
        }
    }

    /// Forgets everything, because the peer is gone.
    pub(super) fn clear(&mut self) {
        self.staged.clear();
        self.gone = 0;
        self.pieces.clear();
        self.asked.clear();
        self.answer_pieces = 0;
        self.is_held_back = false;
        self.block_sending.clear();
        (self.wake_owed, self.taken_owed) = (false, None);
        if let Some(sealed) = &mut self.sealed {
            sealed.clear();
        }
    }
}

/// Returns the frame that precedes a write's content.
fn write_frame(view: ViewId, write: &Write) -> Result<Frame, OutOfRow> {
    Ok(Frame::Write {
        view,
        region: write.target.region,
        offset: u64::try_from(write.target.offset).map_err(|_| OutOfRow)?,
        length: u32::try_from(write.length).map_err(|_| OutOfRow)?,
    })
}

#[cfg(test)]
mod tests;
