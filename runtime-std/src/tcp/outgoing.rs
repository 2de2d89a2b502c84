//! What still has to go to one peer.
//!
//! At most one list of writes waits here, with the few frames that are owed beside it: while it does not go, the next
//! one is `QueueFull`, and what its caller posts later speaks for everything that changed meanwhile. So a slow peer
//! costs no memory, and gets the freshest of what it missed.
//!
//! Headers, guards and short content are copied at the call, into `staged`. Long content stays where it is, and the
//! kernel takes it from there. With a cipher both are sealed, a record at a time, when the last record has gone.
//!
//! Blocks go when no list waits, a piece at a time: so a list waits for a piece of a block at most.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use tramontane_core::fabric::{Kind, Token, WRITES_MAX, Way, Write};
use tramontane_core::ids::ViewId;
use tramontane_core::memory::OutOfRow;
use tramontane_mesh::{Cipher, RECORD_CONTENT_MAX, RECORD_MAX};

use super::blocks::Departures;
use super::frame::{Frame, HEADER};
use super::memory::Rows;

/// The most bytes of a guard, which are copied at the call.
pub(super) const GUARD_MAX: usize = 1024;

/// Content up to this size is copied too: that is cheaper than one more range for the kernel.
const COPIED_MAX: usize = 512;

/// Room for one list, and for what is owed beside it.
const STAGED_MAX: usize = WRITES_MAX * (HEADER + GUARD_MAX) + 64 * HEADER;

/// Ranges in one system call: a list's, and a piece's.
const SLICES_MAX: usize = 2 * WRITES_MAX + 4;

/// What one call sends before other peers have their turn, and before what came is read.
const TURN_BYTES: usize = 1 << 20;

/// A range as long is sealed from where it is, in records of its own.
const SEALED_DIRECT_MIN: usize = RECORD_CONTENT_MAX / 2;

/// What has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// The list with this token.
    List(Token),
    /// A block.
    Block(Way, Token),
}

/// A part of the stream.
#[derive(Debug)]
enum Piece {
    /// So many of the staged bytes.
    Staged(usize),
    /// Content where it is.
    Lent { rows: Arc<Rows>, offset: usize, length: usize },
    /// Content of a view that has ended: what was left of it when it did.
    Kept { bytes: Box<[u8]>, from: usize },
    /// The list with this token ends here.
    End(Token),
}

/// The queue to one peer.
#[derive(Debug)]
pub(super) struct Outgoing {
    staged: Vec<u8>,
    /// How many of the staged bytes have gone.
    gone: usize,
    pieces: VecDeque<Piece>,
    /// The doorbell is owed, and rings once the queue is empty.
    wake_owed: bool,
    pub(super) departures: Departures,
    sealed: Option<Sealed>,
}

/// What a cipher needs.
#[derive(Debug)]
struct Sealed {
    content: Vec<u8>,
    record: Box<[u8]>,
    /// The part of the record that has not gone.
    from: usize,
    to: usize,
}

impl Outgoing {
    pub(super) fn new(is_keyed: bool) -> Self {
        let sealed = || Sealed {
            content: Vec::with_capacity(RECORD_CONTENT_MAX),
            record: vec![0; RECORD_MAX].into(),
            from: 0,
            to: 0,
        };
        Self {
            staged: Vec::with_capacity(STAGED_MAX),
            gone: 0,
            pieces: VecDeque::with_capacity(4 * WRITES_MAX),
            wake_owed: false,
            departures: Departures::new(is_keyed),
            sealed: is_keyed.then(sealed),
        }
    }

    /// Whether something waits.
    pub(super) fn is_pending(&self) -> bool {
        let is_sealed = self.sealed.as_ref().is_some_and(|sealed| sealed.from < sealed.to);
        !self.pieces.is_empty() || self.wake_owed || is_sealed || self.departures.is_pending()
    }

    /// Whether a list, or a word, waits: then there is no room for another list.
    pub(super) fn is_full(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Adds a frame without content.
    pub(super) fn say(&mut self, frame: Frame) {
        self.stage(&frame.encode()[..frame.length()]);
    }

    /// Owes a ring of the doorbell. Several that are owed at once are one.
    pub(super) fn owe_wake(&mut self) {
        self.wake_owed = true;
    }

    /// Adds a list whose ranges were checked.
    pub(super) fn add(
        &mut self,
        view: ViewId,
        rows: &Arc<Rows>,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), OutOfRow> {
        for write in writes {
            let Write { source, target, length, kind } = *write;
            let frame = Frame::Write {
                view,
                region: target.region,
                offset: u64::try_from(target.offset).map_err(|_| OutOfRow)?,
                length: u32::try_from(length).map_err(|_| OutOfRow)?,
            };
            self.say(frame);
            if kind == Kind::Guard || length <= COPIED_MAX {
                self.stage(rows.content(source.offset, length)?);
            } else {
                self.pieces.push_back(Piece::Lent { rows: Arc::clone(rows), offset: source.offset, length });
            }
        }
        if let Some(token) = token {
            self.pieces.push_back(Piece::End(token));
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

    /// Sends what the socket takes now, within bounds; what has gone is given to `gone`. False if the socket is full.
    ///
    /// # Errors
    /// What the socket says, when it will take nothing more.
    pub(super) fn flush(
        &mut self,
        stream: &TcpStream,
        cipher: Option<&mut Cipher>,
        gone: impl FnMut(Gone),
    ) -> io::Result<bool> {
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

    fn flush_clear(&mut self, stream: &TcpStream, mut gone: impl FnMut(Gone)) -> Result<bool, Errno> {
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
            let sent = sendmsg(stream, &slices[..count], &mut SendAncillaryBuffer::default(), flags)?;
            self.take(sent, &mut gone);
            if sent < bytes {
                return Ok(false);
            }
            total += sent;
        }
        Ok(true)
    }

    /// Whoever is owed a ring gets it behind the lists; a block goes on when nothing else is there.
    fn begin_what_waits(&mut self) {
        if !self.pieces.is_empty() {
            return;
        }
        if std::mem::take(&mut self.wake_owed) {
            self.say(Frame::Wake);
        } else {
            self.departures.begin();
        }
    }

    /// What comes next, as ranges: how many, and how many bytes in all.
    fn slices<'s>(&'s self, slices: &mut [IoSlice<'s>; SLICES_MAX]) -> Option<(usize, usize)> {
        let (mut count, mut bytes, mut staged) = (0, 0, self.gone);
        for part in self.departures.rest()?.into_iter().filter(|part| !part.is_empty()) {
            *slices.get_mut(count)? = IoSlice::new(part);
            count += 1;
            bytes += part.len();
        }
        for piece in &self.pieces {
            let part = match piece {
                Piece::End(_) => continue,
                Piece::Staged(length) => {
                    staged += length;
                    self.staged.get(staged - length..staged)?
                }
                Piece::Lent { rows, offset, length } => rows.content(*offset, *length).ok()?,
                Piece::Kept { bytes, from } => bytes.get(*from..)?,
            };
            let Some(slice) = slices.get_mut(count) else { break };
            *slice = IoSlice::new(part);
            count += 1;
            bytes += part.len();
        }
        Some((count, bytes))
    }

    /// Forgets the first `count` bytes, and what ends with them.
    fn take(&mut self, count: usize, gone: &mut impl FnMut(Gone)) {
        let sent = |way, token| gone(Gone::Block(way, token));
        let Some(mut left) = self.departures.take(count, sent) else { return };
        while let Some(piece) = self.pieces.front_mut() {
            let is_done = match piece {
                Piece::End(token) => {
                    gone(Gone::List(*token));
                    true
                }
                Piece::Staged(length) => {
                    let part = left.min(*length);
                    self.gone += part;
                    *length -= part;
                    left -= part;
                    *length == 0
                }
                Piece::Lent { offset, length, .. } => {
                    let part = left.min(*length);
                    *offset += part;
                    *length -= part;
                    left -= part;
                    *length == 0
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
        }
        self.staged.clear();
        self.gone = 0;
    }

    fn flush_sealed(
        &mut self,
        stream: &TcpStream,
        cipher: &mut Cipher,
        mut gone: impl FnMut(Gone),
    ) -> Result<bool, Errno> {
        let mut total = 0;
        while total < TURN_BYTES {
            if let Some(sealed) = &mut self.sealed
                && sealed.from < sealed.to
            {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                let rest = sealed.record.get(sealed.from..sealed.to).ok_or(Errno::FAULT)?;
                sealed.from += rustix::net::send(stream, rest, flags)?;
                if sealed.from < sealed.to {
                    return Ok(false);
                }
            }
            self.begin_what_waits();
            let sealed = self.seal(cipher, &mut gone)?;
            if sealed == 0 {
                break;
            }
            total += sealed;
        }
        Ok(true)
    }

    /// Seals the next record; of how many bytes, none if there is nothing to seal.
    fn seal(&mut self, cipher: &mut Cipher, gone: &mut impl FnMut(Gone)) -> Result<usize, Errno> {
        let Some(mut sealed) = self.sealed.take() else { return Err(Errno::FAULT) };
        sealed.content.clear();
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let (count, _) = self.slices(&mut slices).ok_or(Errno::FAULT)?;
        // Short ranges share a record; a long one is not copied together with them.
        let is_long = |slice: &&IoSlice<'_>| slice.len() >= SEALED_DIRECT_MIN;
        let content = match slices[..count].first().filter(is_long) {
            Some(first) => &first[..first.len().min(RECORD_CONTENT_MAX)],
            None => {
                for slice in slices[..count].iter().take_while(|slice| !is_long(slice)) {
                    let room = RECORD_CONTENT_MAX - sealed.content.len();
                    sealed.content.extend_from_slice(&slice[..slice.len().min(room)]);
                }
                &sealed.content[..]
            }
        };
        let bytes = content.len();
        if bytes > 0 {
            sealed.to = cipher.seal(content, &mut sealed.record).map_err(|_| Errno::FAULT)?;
            sealed.from = 0;
        }
        self.take(bytes, gone);
        self.sealed = Some(sealed);
        Ok(bytes)
    }

    /// Reads a view's row no more: of a list that has gone in part, keeps the rest, so that the stream goes on;
    /// nobody is told of its end.
    pub(super) fn keep(&mut self, ended: &Arc<Rows>) {
        let is_of = |piece: &Piece| matches!(piece, Piece::Lent { rows, .. } if Arc::ptr_eq(rows, ended));
        if !self.pieces.iter().any(is_of) {
            return;
        }
        for piece in &mut self.pieces {
            if let Piece::Lent { rows, offset, length } = piece
                && Arc::ptr_eq(rows, ended)
            {
                let bytes = rows.content(*offset, *length).map(Box::from).unwrap_or_default();
                *piece = Piece::Kept { bytes, from: 0 };
            }
        }
        self.pieces.retain(|piece| !matches!(piece, Piece::End(_)));
    }

    /// Forgets everything: the peer is gone.
    pub(super) fn clear(&mut self) {
        self.staged.clear();
        self.gone = 0;
        self.pieces.clear();
        self.departures.clear();
        self.wake_owed = false;
        if let Some(sealed) = &mut self.sealed {
            (sealed.from, sealed.to) = (0, 0);
        }
    }
}
