//! A session whose calls never block, for a thread that serves many sessions. Outgoing messages are
//! queued, and incoming ones are taken from a buffer.
//!
//! A message may be longer than a frame. It is divided into frames in the same way as a stream of
//! [`send_stream`](super::Session::send_stream), so the other end may use either kind of call.
//!
//! # Invariants
//! - A call reads and sends a bounded number of bytes, and never blocks.
//! - If a message is longer than the caller allows, only the allowed number of bytes is kept.

use std::os::fd::{AsFd, BorrowedFd};

use super::handshake::TransportState;
use rustix::event::PollFlags;
use rustix::io::Errno;

use super::channel::{MESSAGE_MAX, open, seal};
use super::deadline::ChannelError;
use super::session::SessionError;
use super::session_stream::{END, MORE};
use super::source::Source;
use super::stream::Stream;

/// The number of bytes read per call.
const READ_BYTES: usize = 64 << 10;

/// The size of the length prefix of each frame, in bytes.
const LENGTH_BYTES: usize = 2;

/// A session whose calls never block. It ends when dropped, or at the first error.
#[derive(Debug)]
pub struct QueuedSession {
    stream: Stream,
    source: Source,
    cipher: Option<TransportState>,
    /// Received bytes. Those after `taken` have not been processed yet.
    incoming: Vec<u8>,
    taken: usize,
    /// Parts of an incomplete message.
    parts: Vec<u8>,
    /// Frames to be sent. The bytes after `sent` have not been sent yet.
    outgoing: Vec<u8>,
    sent: usize,
    is_closed: bool,
}

impl QueuedSession {
    pub(super) fn new(stream: Stream, cipher: Option<TransportState>) -> Self {
        Self {
            source: Source::of(&stream),
            stream,
            cipher,
            incoming: Vec::new(),
            taken: 0,
            parts: Vec::new(),
            outgoing: Vec::new(),
            sent: 0,
            is_closed: false,
        }
    }

    /// Reads the available bytes, up to a bound. Reads nothing while received messages are waiting
    /// to be taken.
    ///
    /// # Errors
    /// Returns [`SessionError::Closed`] once the other end has closed the session and everything
    /// before that has been read; otherwise, returns the system's error.
    pub fn read(&mut self) -> Result<(), SessionError> {
        if self.is_closed {
            return Err(SessionError::Closed);
        }
        if self.has_frame() {
            return Ok(());
        }
        self.incoming.drain(..self.taken);
        self.taken = 0;
        let filled = self.incoming.len();
        self.incoming.resize(filled + READ_BYTES, 0);
        let read = self.stream.read_now(&mut self.incoming[filled..]);
        self.incoming.truncate(filled + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => {
                self.is_closed = true;
                Err(SessionError::Closed)
            }
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(ChannelError::from(errno).into()),
        }
    }

    /// Takes the next message from the bytes that have been [read](Self::read), if it is complete.
    ///
    /// # Errors
    /// Returns [`SessionError::TooLong`] for a message of more than `bytes_max` bytes,
    /// [`SessionError::Malformed`] for invalid data, or [`SessionError::Aborted`].
    pub fn take(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, SessionError> {
        while let Some(frame) = self.take_frame()? {
            let (mark, part) = frame.split_first().ok_or(SessionError::Malformed)?;
            if self.parts.len().saturating_add(part.len()) > bytes_max {
                let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
                return Err(SessionError::TooLong { limit });
            }
            self.parts.extend_from_slice(part);
            match *mark {
                END => return Ok(Some(std::mem::take(&mut self.parts))),
                MORE if frame.len() == MESSAGE_MAX => {}
                _ => return Err(SessionError::Malformed),
            }
        }
        Ok(None)
    }

    fn frame_bytes(&self) -> Option<usize> {
        let header = self.incoming.get(self.taken..)?.first_chunk::<LENGTH_BYTES>()?;
        Some(LENGTH_BYTES + usize::from(u16::from_le_bytes(*header)))
    }

    fn has_frame(&self) -> bool {
        let here = self.incoming.len() - self.taken;
        self.frame_bytes().is_some_and(|bytes| bytes <= here)
    }

    fn take_frame(&mut self) -> Result<Option<Vec<u8>>, SessionError> {
        let Some(bytes) = self.frame_bytes() else { return Ok(None) };
        let Some(frame) = self.incoming.get(self.taken + LENGTH_BYTES..self.taken + bytes) else {
            return Ok(None);
        };
        let message = open(self.cipher.as_mut(), frame)?;
        self.taken += bytes;
        Ok(Some(message))
    }

    /// Queues a message. [`flush`](Self::flush) sends it.
    ///
    /// # Errors
    /// Returns [`SessionError::Malformed`] if the cipher fails.
    pub fn put(&mut self, message: &[u8]) -> Result<(), SessionError> {
        let mut rest = message;
        loop {
            let (part, after) = rest.split_at(rest.len().min(MESSAGE_MAX - 1));
            let is_last = part.len() < MESSAGE_MAX - 1;
            let mark = if is_last { END } else { MORE };
            let frame = [&[mark], part].concat();
            self.outgoing.extend_from_slice(&seal(self.cipher.as_mut(), &frame)?);
            rest = after;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Sends as much of the queue as the system accepts now. Returns true if nothing is left.
    ///
    /// # Errors
    /// Returns [`SessionError::Closed`], or the system's error.
    pub fn flush(&mut self) -> Result<bool, SessionError> {
        while self.sent < self.outgoing.len() {
            match self.stream.write_now(&self.outgoing[self.sent..]) {
                Ok(0) => return Err(SessionError::Closed),
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(ChannelError::from(errno).into()),
            }
        }
        self.outgoing.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Returns the number of bytes waiting to be sent.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.outgoing.len() - self.sent
    }

    /// Returns the source of the other end.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// Returns the events to wait for: readable if `reads` is true, and writable if bytes are
    /// waiting to be sent.
    #[must_use]
    pub fn interest(&self, reads: bool) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, reads);
        flags.set(PollFlags::OUT, self.unsent_bytes() > 0);
        flags
    }
}

impl AsFd for QueuedSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::super::channel::Channel;
    use super::super::session::Session;
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn pair() -> (QueuedSession, UnixStream) {
        let (one, other) = UnixStream::pair().expect("sockets");
        (QueuedSession::new(Stream::Unix(one), None), other)
    }

    fn session(stream: UnixStream) -> Session {
        Session::new(Channel::new(Stream::Unix(stream), None), None)
    }

    /// Messages with lengths around one, two and three frames, in both directions, with a blocking
    /// session at the other end.
    #[test]
    fn queued_and_blocking_sessions_interoperate() {
        let (mut queued, other) = pair();
        let mut waiting = session(other);
        let part = MESSAGE_MAX - 1;
        for length in [0, 1, part - 1, part, part + 1, 2 * part, 3 * part - 1] {
            let message: Vec<u8> = (0..length).map(|at| at.to_le_bytes()[0]).collect();
            queued.put(&message).expect("no cipher");
            let mut heard = Vec::new();
            std::thread::scope(|scope| {
                let taken = scope.spawn(|| waiting.receive_stream(&mut heard, u64::MAX, LONG));
                while !queued.flush().expect("the other end is there") {
                    std::thread::yield_now();
                }
                taken.join().expect("no panic").expect("it comes");
            });
            assert_eq!(heard, message);

            let heard = std::thread::scope(|scope| {
                scope.spawn(|| waiting.send_stream(&mut message.as_slice(), LONG));
                loop {
                    queued.read().expect("the other end is there");
                    if let Some(heard) = queued.take(length).expect("it makes sense") {
                        return heard;
                    }
                }
            });
            assert_eq!(heard, message);
        }
    }

    #[test]
    fn buffered_messages_are_readable_after_peer_closes() {
        let (mut queued, other) = pair();
        let mut sender = QueuedSession::new(Stream::Unix(other), None);
        for message in [b"one".as_slice(), b"", b"two"] {
            sender.put(message).expect("no cipher");
        }
        assert!(sender.flush().expect("it is there"));
        drop(sender);
        queued.read().expect("it came");
        for message in [b"one".as_slice(), b"", b"two"] {
            assert_eq!(queued.take(3).expect("it makes sense").expect("it came"), message);
        }
        assert!(queued.take(3).expect("nothing").is_none());
        assert!(matches!(queued.read(), Err(SessionError::Closed)));
    }

    #[test]
    fn overlong_or_malformed_messages_are_errors() {
        let (mut queued, other) = pair();
        let mut sender = QueuedSession::new(Stream::Unix(other), None);
        sender.put(b"four").expect("no cipher");
        sender.flush().expect("it is there");
        queued.read().expect("it came");
        assert!(matches!(queued.take(3), Err(SessionError::TooLong { limit: 3 })));
        for garbage in [&[0_u8, 0][..], &[1, 0, 9], &[2, 0, MORE, 1]] {
            let (mut queued, other) = pair();
            std::io::Write::write_all(&mut &other, garbage).expect("it is there");
            queued.read().expect("it came");
            assert!(matches!(queued.take(64), Err(SessionError::Malformed)), "{garbage:?}");
        }
    }

    /// Bytes that the other end does not accept are kept, and sending resumes where it stopped.
    #[test]
    fn full_socket_keeps_unsent_bytes() {
        let (mut queued, other) = pair();
        let mut sender = QueuedSession::new(Stream::Unix(other), None);
        let message = vec![7; 1 << 20];
        sender.put(&message).expect("no cipher");
        assert!(!sender.flush().expect("it is there"));
        assert!(sender.unsent_bytes() > 0);
        assert_eq!(sender.interest(false), PollFlags::OUT);
        let heard = loop {
            queued.read().expect("it is there");
            if let Some(heard) = queued.take(1 << 20).expect("it makes sense") {
                break heard;
            }
            sender.flush().expect("it is there");
        };
        assert!(heard == message && sender.unsent_bytes() == 0);
    }
}
