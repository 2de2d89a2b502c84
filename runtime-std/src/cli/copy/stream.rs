//! Bytes as messages at the root, and messages as bytes at a receiver. Both count a checksum of all.
//!
//! An empty message ends the stream.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use xxhash_rust::xxh3::Xxh3;

use super::group::CHUNK_BYTES;
use super::orders::Orders;
use super::standstill::Pace;
use super::talk::Manifest;
use crate::blocks::{Buffer, Ended, Group, Recipient};

/// Between two looks whether a wait is to end.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// A checksum, as people compare it.
pub(super) fn hexadecimal(hash: &Xxh3) -> String {
    format!("{:032x}", hash.digest128())
}

/// What reads and writes fail with when it is the copy that ended, and not the file system.
pub(super) fn broken(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, why.to_string())
}

/// What was written so far, as messages of a group.
pub(super) struct Outgoing {
    group: Arc<Group>,
    free: Receiver<Buffer>,
    stop: Arc<AtomicBool>,
    pace: Arc<Pace>,
    filling: Option<(Buffer, usize)>,
    hash: Xxh3,
    bytes: u64,
}

impl Outgoing {
    /// A stream into a group, whose buffers come back from `free`. `stop` ends a wait for one.
    pub(super) fn new(
        group: Arc<Group>,
        free: Receiver<Buffer>,
        stop: Arc<AtomicBool>,
        pace: Arc<Pace>,
    ) -> Self {
        Self { group, free, stop, pace, filling: None, hash: Xxh3::new(), bytes: 0 }
    }

    /// Says what it is about, which is no part of the stream.
    pub(super) fn manifest(&mut self, manifest: &Manifest) -> io::Result<()> {
        self.message(&serde_json::to_vec(manifest)?)
    }

    fn message(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut buffer = self.next_free()?;
        let into = buffer.get_mut(..bytes.len()).ok_or(io::ErrorKind::InvalidInput)?;
        into.copy_from_slice(bytes);
        self.send(buffer, bytes.len())
    }

    /// Ends the stream. Its bytes and its checksum.
    pub(super) fn finish(&mut self) -> io::Result<(u64, String)> {
        self.flush()?;
        self.message(&[])?;
        Ok((self.bytes, hexadecimal(&self.hash)))
    }

    fn send(&self, buffer: Buffer, bytes: usize) -> io::Result<()> {
        self.group.send(buffer, bytes).map(drop).map_err(|failure| broken(failure.why))
    }

    /// Waits for a buffer that is free.
    fn next_free(&self) -> io::Result<Buffer> {
        self.pace.waits();
        loop {
            match self.free.recv_timeout(LOOK_PAUSE) {
                Ok(buffer) => return Ok(buffer),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(ended) = self.group.ended() {
                return Err(broken(ended));
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
    }
}

impl Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (mut buffer, filled) = match self.filling.take() {
            Some(filling) => filling,
            None => (self.next_free()?, 0),
        };
        let room = CHUNK_BYTES.min(buffer.len()) - filled;
        let taken = &bytes[..bytes.len().min(room)];
        buffer[filled..filled + taken.len()].copy_from_slice(taken);
        self.hash.update(taken);
        self.bytes += taken.len() as u64;
        if taken.len() == room {
            self.send(buffer, filled + taken.len())?;
        } else {
            self.filling = Some((buffer, filled + taken.len()));
        }
        self.pace.has_read(taken.len());
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.filling.take() {
            Some((buffer, filled)) if filled > 0 => self.send(buffer, filled),
            filling => {
                self.filling = filling;
                Ok(())
            }
        }
    }
}

/// Gives buffers of what was sent back.
pub(super) struct GiveBack(pub(super) Sender<Buffer>);

impl Recipient for GiveBack {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        None
    }

    fn completed(&mut self, _: u64, buffer: Buffer, _: usize) {
        // Whoever sends may be through.
        let _ = self.0.send(buffer);
    }
}

/// What a receiver's polling thread hands on.
pub(super) enum Arrival {
    /// A message.
    Message(Buffer, usize),
    /// The group's end.
    Ended(Ended),
}

/// Takes messages into buffers that are free, and hands them on. While none is free the whole copy waits for this member.
pub(super) struct Taking {
    pub(super) free: Receiver<Buffer>,
    pub(super) arrivals: Sender<Arrival>,
    /// This member takes nothing more.
    pub(super) stop: Arc<AtomicBool>,
}

impl Recipient for Taking {
    fn incoming(&mut self, _: u64, bytes: usize) -> Option<Buffer> {
        while !self.stop.load(Ordering::Relaxed) {
            match self.free.recv_timeout(LOOK_PAUSE) {
                // A message of whole blocks may be a little larger than one of bytes.
                Ok(buffer) => return Some(buffer).filter(|buffer| buffer.len() >= bytes),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        None
    }

    fn completed(&mut self, _: u64, buffer: Buffer, bytes: usize) {
        // Who does not take it any more has stopped.
        let _ = self.arrivals.send(Arrival::Message(buffer, bytes));
    }

    fn ended(&mut self, ended: &Ended) {
        let _ = self.arrivals.send(Arrival::Ended(ended.clone()));
    }
}

/// A receiver's stream: messages as bytes.
pub(super) struct Incoming<'r, P> {
    arrivals: &'r Receiver<Arrival>,
    free: &'r Sender<Buffer>,
    orders: &'r Orders<'r>,
    /// Called with the bytes so far after each message.
    progress: P,
    current: Option<(Buffer, usize, usize)>,
    is_over: bool,
    hash: Xxh3,
    bytes: u64,
}

impl<'r, P: FnMut(u64)> Incoming<'r, P> {
    /// A stream of what arrives, until the root says otherwise; buffers that were read go back to `free`.
    pub(super) fn new(
        arrivals: &'r Receiver<Arrival>,
        free: &'r Sender<Buffer>,
        orders: &'r Orders<'r>,
        progress: P,
    ) -> Self {
        Self {
            arrivals,
            free,
            orders,
            progress,
            current: None,
            is_over: false,
            hash: Xxh3::new(),
            bytes: 0,
        }
    }

    /// One message of its own, which is no part of the stream.
    pub(super) fn message(&mut self) -> io::Result<Vec<u8>> {
        let (buffer, bytes) = self.next_arrival()?;
        let message = buffer.get(..bytes).unwrap_or_default().to_vec();
        let _ = self.free.send(buffer);
        Ok(message)
    }

    /// The stream's bytes and checksum, once it was read to its end.
    pub(super) fn sum(&self) -> (u64, String) {
        (self.bytes, hexadecimal(&self.hash))
    }

    fn next_arrival(&self) -> io::Result<(Buffer, usize)> {
        self.orders.waits();
        loop {
            // At each message: where data comes all the time, nobody ever waits.
            self.orders.check().map_err(|failure| broken(failure.text()))?;
            match self.arrivals.recv_timeout(LOOK_PAUSE) {
                Ok(Arrival::Message(buffer, bytes)) => return Ok((buffer, bytes)),
                Ok(Arrival::Ended(ended)) => return Err(broken(ended)),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl<P: FnMut(u64)> Read for Incoming<'_, P> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_over || into.is_empty() {
            return Ok(0);
        }
        let (buffer, bytes, at) = match self.current.take() {
            Some(current) => current,
            None => {
                let (buffer, bytes) = self.next_arrival()?;
                let message = buffer.get(..bytes).unwrap_or_default();
                self.hash.update(message);
                self.bytes += bytes as u64;
                (self.progress)(self.bytes);
                (buffer, bytes, 0)
            }
        };
        if bytes == 0 {
            self.is_over = true;
            let _ = self.free.send(buffer);
            return Ok(0);
        }
        let taken = into.len().min(bytes - at);
        into[..taken].copy_from_slice(&buffer[at..at + taken]);
        if at + taken == bytes {
            let _ = self.free.send(buffer);
        } else {
            self.current = Some((buffer, bytes, at + taken));
        }
        Ok(taken)
    }
}
