//! Bytes as chunks at the sender, and chunks as bytes at a receiver. Both compute a checksum of all
//! bytes.
//!
//! A chunk is a large message of the group. An empty chunk ends the stream.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use xxhash_rust::xxh3::Xxh3;

use super::group::{CHUNK_BYTES, CHUNKS_AHEAD};
use super::member::{Chunk, CopyMember, LOOK_PAUSE, Watched};
use super::messages::{CopyMessage, Sum};
use super::stall::Pace;
use tramontane_local::exit::Failure;
use tramontane_runtime::blocks::Buffer;
use tramontane_runtime::group::{self, SendLargeError};
use tramontane_runtime::member::SendError;

/// Formats a checksum for comparison by people.
fn hexadecimal(hash: &Xxh3) -> String {
    format!("{:032x}", hash.digest128())
}

/// Returns the error that reads and writes report if the copy ended, as opposed to a failure of the
/// file system.
pub(super) fn broken(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, why.to_string())
}

/// Splits the bytes written to it into chunks for the group.
pub(super) struct Outgoing {
    sender: group::Sender,
    watched: Arc<Watched>,
    stop: Arc<AtomicBool>,
    pace: Arc<Pace>,
    /// The incomplete chunk, and the number of bytes in it.
    filling: Option<(Buffer, usize)>,
    chunks: u64,
    hash: Xxh3,
    bytes: u64,
}

impl Outgoing {
    /// Creates a stream into the group. Setting `stop` ends its waits.
    pub(super) fn new(
        sender: group::Sender,
        watched: Arc<Watched>,
        stop: Arc<AtomicBool>,
        pace: Arc<Pace>,
    ) -> Self {
        let (filling, hash) = (None, Xxh3::new());
        Self { sender, watched, stop, pace, filling, chunks: 0, hash, bytes: 0 }
    }

    /// Ends the stream. Returns its number of bytes and its checksum.
    pub(super) fn finish(&mut self) -> io::Result<Sum> {
        self.flush()?;
        let buffer = self.buffer()?;
        self.send(buffer, 0)?;
        Ok(Sum { bytes: self.bytes, checksum: hexadecimal(&self.hash) })
    }

    fn buffer(&self) -> io::Result<Buffer> {
        self.sender.buffer(CHUNK_BYTES).map_err(broken)
    }

    /// Sends a chunk as soon as all receivers have room for it.
    fn send(&mut self, buffer: Buffer, bytes: usize) -> io::Result<()> {
        self.pace.waits();
        self.wait_for_room()?;
        let mut left = Some(buffer);
        while let Some(buffer) = left.take() {
            if let Err(unsent) = self.sender.send_large(buffer, bytes, LOOK_PAUSE) {
                match unsent.why {
                    SendLargeError::Send(SendError::TimedOut(_)) => left = unsent.buffer,
                    why => return Err(broken(why)),
                }
                self.check()?;
            }
        }
        self.chunks += 1;
        Ok(())
    }

    fn wait_for_room(&self) -> io::Result<()> {
        loop {
            let seen = {
                let ledger = self.watched.ledger();
                let taken = ledger.chunks_taken();
                if taken.is_some_and(|taken| self.chunks < taken.saturating_add(CHUNKS_AHEAD)) {
                    return Ok(());
                }
                ledger.changes()
            };
            self.check()?;
            self.watched.wait(seen);
        }
    }

    fn check(&self) -> io::Result<()> {
        if self.stop.load(Ordering::Relaxed) || self.watched.ledger().decision().is_some() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

impl Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (mut buffer, filled) = match self.filling.take() {
            Some(filling) => filling,
            None => (self.buffer()?, 0),
        };
        let taken = &bytes[..bytes.len().min(CHUNK_BYTES - filled)];
        let filled_now = filled + taken.len();
        buffer[filled..filled_now].copy_from_slice(taken);
        self.hash.update(taken);
        self.bytes += taken.len() as u64;
        if filled_now == CHUNK_BYTES {
            self.send(buffer, filled_now)?;
        } else {
            self.filling = Some((buffer, filled_now));
        }
        self.pace.has_read(taken.len());
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.filling.take() {
            Some((buffer, filled)) if filled > 0 => self.send(buffer, filled),
            _ => Ok(()),
        }
    }
}

/// A receiver's stream: chunks as bytes.
pub(super) struct Incoming<'r> {
    member: &'r CopyMember,
    /// Ends a wait.
    cancel: &'r dyn Fn() -> Result<(), Failure>,
    arrived: &'r Receiver<Chunk>,
    free: &'r Sender<Buffer>,
    /// The chunk being read, and the number of bytes read from it.
    current: Option<(Chunk, usize)>,
    is_over: bool,
    taken: u64,
    /// Number of taken chunks that this receiver has announced.
    announced: u64,
    hash: Xxh3,
    bytes: u64,
}

impl<'r> Incoming<'r> {
    /// Creates a stream of the chunks that arrive, until the copy is called off. Buffers that have
    /// been read are returned to `free`.
    pub(super) fn new(
        member: &'r CopyMember,
        cancel: &'r dyn Fn() -> Result<(), Failure>,
        arrived: &'r Receiver<Chunk>,
        free: &'r Sender<Buffer>,
    ) -> Self {
        let (current, hash) = (None, Xxh3::new());
        Self {
            member,
            cancel,
            arrived,
            free,
            current,
            is_over: false,
            taken: 0,
            announced: 0,
            hash,
            bytes: 0,
        }
    }

    /// Returns the stream's number of bytes and its checksum, once it has been read to its end.
    pub(super) fn sum(&self) -> Sum {
        Sum { bytes: self.bytes, checksum: hexadecimal(&self.hash) }
    }

    /// Counts a chunk as read, and returns its buffer so that there is room for another.
    fn give_back(&mut self, buffer: Buffer) {
        // If the group has ended, the buffer is not needed.
        let _ = self.free.send(buffer);
        self.taken += 1;
        self.announce_taken();
    }

    fn announce_taken(&mut self) {
        let notice = CopyMessage::Taken { chunks: self.taken, bytes: self.bytes };
        if self.announced < self.taken && self.member.try_announce(&notice) {
            self.announced = self.taken;
        }
    }

    fn next_chunk(&mut self) -> io::Result<Chunk> {
        loop {
            // Checked for each chunk, because this receiver may never wait while data keeps
            // arriving.
            (self.cancel)().map_err(|failure| broken(failure.text()))?;
            self.member.check().map_err(|failure| broken(failure.text()))?;
            match self.arrived.recv_timeout(LOOK_PAUSE) {
                Ok(chunk) => return Ok(chunk),
                Err(RecvTimeoutError::Timeout) => self.announce_taken(),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    /// Returns the error for a stream that receives nothing more.
    fn ended(&self) -> io::Error {
        match self.member.stopped() {
            Some(failure) => broken(failure.text()),
            None => io::Error::new(
                io::ErrorKind::InvalidData,
                "the sending node has sent more than the permitted amount",
            ),
        }
    }
}

impl Read for Incoming<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_over || into.is_empty() {
            return Ok(0);
        }
        let ((buffer, bytes), at) = match self.current.take() {
            Some(current) => current,
            None => {
                let (buffer, bytes) = self.next_chunk()?;
                let chunk = buffer.get(..bytes).unwrap_or_default();
                self.hash.update(chunk);
                self.bytes += chunk.len() as u64;
                ((buffer, bytes), 0)
            }
        };
        if bytes == 0 {
            self.is_over = true;
            return Ok(0);
        }
        let taken = into.len().min(bytes - at);
        into[..taken].copy_from_slice(&buffer[at..at + taken]);
        if at + taken == bytes {
            self.give_back(buffer);
        } else {
            self.current = Some(((buffer, bytes), at + taken));
        }
        Ok(taken)
    }
}
