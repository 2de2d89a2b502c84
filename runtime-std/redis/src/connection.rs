//! One client: the bytes that it sent, the replies that it is owed, and the bytes that it has not
//! read.
//!
//! # Invariants
//! - Replies are written in the order of their requests: `owed` holds a place for everything that
//!   the group is to answer, and local replies behind such a place wait for it.
//! - Nothing is read while the group owes a reply. So a client has at most one read of requests in
//!   flight, what it sends meanwhile is read together, and its memory is bounded.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use crate::machine::RunReplies;
use crate::protocol::{Parsed, Reply, RequestLimits, RequestReader};
use crate::refusal::CommandRefusal;
use crate::requests::{Handled, handle, may_follow_slow};
use crate::session::ClientSession;
use crate::surroundings::Surroundings;

/// An empty buffer that is larger than this returns its memory.
const KEPT_BYTES: usize = 16 << 10;

/// The number of reads after which other connections have their turn, if a request is incomplete.
const READS_MAX: usize = 16;

/// A reply that is owed to the client.
enum Owed {
    /// The replies to a run, from the group.
    Run,
    /// The versions of these keys, from the group.
    Versions(Vec<Vec<u8>>),
    /// A reply that waits for those before it.
    Ready(Vec<u8>),
}

/// The connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

/// A client's connection.
pub(crate) struct ClientConnection {
    stream: TcpStream,
    session: ClientSession,
    reader: RequestReader,
    /// Bytes that are not a complete request yet, or that follow a request that must be answered
    /// first.
    input: Vec<u8>,
    owed: VecDeque<Owed>,
    output: Vec<u8>,
    /// The number of bytes of `output` that have been sent.
    sent: usize,
    /// Whether the socket may have bytes to read.
    pub(crate) is_readable: bool,
    /// Whether the client has ended its half of the connection, or all of it.
    pub(crate) is_hung_up: bool,
    /// Whether the socket may take bytes.
    pub(crate) is_writable: bool,
    /// Whether the connection is in its thread's list of those that are served next.
    pub(crate) is_listed: bool,
    /// Whether `input` waits for the versions of watched keys, or for the replies to slow requests.
    is_held: bool,
    /// Whether the last request was a slow one, which is still to be answered.
    is_slow: bool,
    /// Bytes of the slow requests that are still to be answered.
    slow_bytes: usize,
    /// Whether `input` may begin with a complete request.
    has_unparsed: bool,
    /// Whether no more requests are read, and the connection ends after the last reply.
    is_ending: bool,
    /// The number of bytes that the thread has counted for this connection.
    pub(crate) counted: usize,
}

impl ClientConnection {
    pub(crate) fn new(stream: TcpStream, session: ClientSession) -> Self {
        Self {
            stream,
            session,
            reader: RequestReader::default(),
            input: Vec::new(),
            owed: VecDeque::new(),
            output: Vec::new(),
            sent: 0,
            is_readable: true,
            is_hung_up: false,
            is_writable: true,
            is_listed: false,
            is_held: false,
            is_slow: false,
            slow_bytes: 0,
            has_unparsed: false,
            is_ending: false,
            counted: 0,
        }
    }

    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns whether the next requests may be read.
    fn may_read(&self) -> bool {
        self.owed.is_empty() && !self.is_ending
    }

    /// Returns whether a slow request is still to be answered.
    pub(crate) const fn has_slow(&self) -> bool {
        self.is_slow
    }

    /// Returns whether there is something to do without an event.
    pub(crate) fn is_ready(&self) -> bool {
        self.may_read() && (self.is_readable || self.has_unparsed)
    }

    /// Returns the number of bytes that are held for this client.
    pub(crate) fn bytes(&self) -> usize {
        let owed = |owed: &Owed| match owed {
            Owed::Run => 0,
            Owed::Versions(keys) => keys.iter().map(Vec::len).sum(),
            Owed::Ready(bytes) => bytes.len(),
        };
        let owed: usize = self.owed.iter().map(owed).sum();
        let buffers = self.input.capacity() + self.output.capacity();
        buffers + owed + self.slow_bytes + self.session.bytes()
    }

    /// Reads requests and handles them, with `scratch` as the memory to read into. Fails if the
    /// connection is to be closed.
    pub(crate) fn read(
        &mut self,
        scratch: &mut [u8],
        around: &mut Surroundings<'_>,
    ) -> Result<(), Closed> {
        if self.may_read() && self.has_unparsed {
            self.parse_input(around)?;
        }
        for _ in 0..READS_MAX {
            if !self.may_read() || !self.is_readable {
                return Ok(());
            }
            match self.stream.read(scratch) {
                // The client may still read the replies.
                Ok(0) => self.is_ending = true,
                Ok(length) => {
                    // The next event reports further bytes, but the end has been reported already.
                    self.is_readable = length == scratch.len() || self.is_hung_up;
                    let bytes = scratch.get(..length).unwrap_or_default();
                    if self.input.is_empty() {
                        let consumed = self.parse(bytes, around)?;
                        self.input.extend_from_slice(bytes.get(consumed..).unwrap_or_default());
                    } else {
                        self.input.extend_from_slice(bytes);
                        self.parse_input(around)?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Closed),
            }
        }
        Ok(())
    }

    /// Handles the requests in `input`.
    fn parse_input(&mut self, around: &mut Surroundings<'_>) -> Result<(), Closed> {
        let mut input = std::mem::take(&mut self.input);
        let consumed = self.parse(&input, around)?;
        if consumed == input.len() {
            input.clear();
            if input.capacity() > KEPT_BYTES {
                input = Vec::new();
            }
        } else {
            input.drain(..consumed);
        }
        self.input = input;
        Ok(())
    }

    /// Handles complete requests, and returns the number of bytes that are no longer needed.
    fn parse(&mut self, bytes: &[u8], around: &mut Surroundings<'_>) -> Result<usize, Closed> {
        let request_max = around.limits.request_max;
        let mut reply = Reply::kept(around.limits.unsent_max);
        let (mut at, mut arguments) = (0, Vec::new());
        self.has_unparsed = false;
        while !self.is_ending {
            if self.is_held {
                self.has_unparsed = true;
                break;
            }
            let rest = bytes.get(at..).unwrap_or_default();
            match self.reader.read(rest, RequestLimits { request_max }) {
                Parsed::Incomplete { consumed } => {
                    at += consumed;
                    break;
                }
                Parsed::Empty { consumed } => at += consumed,
                Parsed::TooLarge { consumed, bytes } => {
                    at += consumed;
                    self.session.refuse_transaction();
                    // This reply comes after those to the slow requests before it.
                    self.is_held |= self.is_slow;
                    reply.error(&CommandRefusal::request_too_large(bytes, request_max).0);
                    around.outgoing.end_run();
                }
                Parsed::Malformed(why) => {
                    reply.error(&format!("ERR Protocol error: {why}"));
                    self.is_ending = true;
                    at = bytes.len();
                }
                Parsed::Line { consumed, words } => {
                    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                    if self.must_wait(&words, around) {
                        continue;
                    }
                    at += consumed;
                    self.handle(&words, around, &mut reply)?;
                }
                Parsed::Request { consumed } => {
                    arguments.clear();
                    let ranges = self.reader.arguments().iter();
                    arguments.extend(ranges.filter_map(|range| rest.get(range.clone())));
                    if self.must_wait(&arguments, around) {
                        continue;
                    }
                    at += consumed;
                    self.handle(&arguments, around, &mut reply)?;
                }
            }
        }
        self.add_local(&mut reply, around)?;
        Ok(at)
    }

    /// Returns whether a request has to be read again later, because a slow one is to be answered
    /// first.
    fn must_wait(&mut self, arguments: &[&[u8]], around: &Surroundings<'_>) -> bool {
        if !self.is_slow || may_follow_slow(&self.session, arguments, around) {
            return false;
        }
        self.is_held = true;
        self.reader = RequestReader::default();
        true
    }

    /// Handles one request.
    fn handle(
        &mut self,
        arguments: &[&[u8]],
        around: &mut Surroundings<'_>,
        reply: &mut Reply,
    ) -> Result<(), Closed> {
        around.requests += 1;
        match handle(&mut self.session, arguments, around, reply) {
            Handled::Replied => around.outgoing.end_run(),
            Handled::Ending => {
                around.outgoing.end_run();
                self.is_ending = true;
            }
            Handled::Passed { begins_run: false } => {}
            Handled::Passed { begins_run: true } => {
                self.add_local(reply, around)?;
                self.owed.push_back(Owed::Run);
            }
            Handled::PassedSlow { begins_run, bytes } => {
                self.is_slow = true;
                self.slow_bytes += bytes;
                if begins_run {
                    self.add_local(reply, around)?;
                    self.owed.push_back(Owed::Run);
                }
            }
            Handled::Watching => {
                self.add_local(reply, around)?;
                let keys = arguments.iter().skip(1).map(|key| key.to_vec()).collect();
                self.owed.push_back(Owed::Versions(keys));
                self.is_held = true;
            }
        }
        Ok(())
    }

    /// Adds local replies, after everything that is owed.
    fn add_local(&mut self, reply: &mut Reply, around: &Surroundings<'_>) -> Result<(), Closed> {
        if reply.is_too_large() {
            return Err(Closed);
        }
        if reply.len() > 0 {
            let added = std::mem::replace(reply, Reply::kept(around.limits.unsent_max));
            self.add_ready(added.into_bytes());
        }
        Ok(())
    }

    fn add_ready(&mut self, bytes: Vec<u8>) {
        if self.owed.is_empty() {
            self.add_output(bytes);
        } else {
            self.owed.push_back(Owed::Ready(bytes));
        }
    }

    fn add_output(&mut self, bytes: Vec<u8>) {
        if self.output.is_empty() {
            self.output = bytes;
        } else {
            self.output.extend_from_slice(&bytes);
        }
    }

    /// Adds a message that was published, after everything that is owed.
    pub(crate) fn add_message(&mut self, message: &[u8]) {
        self.add_ready(message.to_vec());
    }

    /// Adds the group's replies to a part of a run.
    pub(crate) fn add_part(&mut self, bytes: Vec<u8>) {
        self.add_output(bytes);
    }

    /// Adds the group's replies to a run.
    pub(crate) fn answer(&mut self, replies: RunReplies) -> Result<(), Closed> {
        if replies.is_too_large {
            return Err(Closed);
        }
        match self.owed.pop_front() {
            Some(Owed::Run) => self.add_output(replies.bytes),
            Some(Owed::Versions(keys)) => {
                self.is_held = false;
                for (key, version) in keys.iter().zip(replies.bytes.chunks(8)) {
                    self.session.watched.argument(key);
                    self.session.watched.argument(version);
                }
                self.add_output(b"+OK\r\n".to_vec());
            }
            Some(Owed::Ready(_)) | None => return Err(Closed),
        }
        self.end_slow();
        self.release();
        Ok(())
    }

    /// Continues after a slow run, if that was the last one.
    fn end_slow(&mut self) {
        if self.is_slow && self.owed.iter().all(|owed| matches!(owed, Owed::Ready(_))) {
            self.is_slow = false;
            self.slow_bytes = 0;
            self.is_held = false;
        }
    }

    /// Replies an error to each request of a run that the group has not answered.
    pub(crate) fn fail(&mut self, requests: usize, text: &str) {
        if let Some(Owed::Versions(_)) = self.owed.pop_front() {
            self.is_held = false;
        }
        let mut reply = Reply::kept(usize::MAX);
        (0..requests).for_each(|_| reply.error(text));
        self.add_output(reply.into_bytes());
        self.end_slow();
        self.release();
    }

    /// Moves the local replies that no longer wait to the output.
    fn release(&mut self) {
        while let Some(Owed::Ready(_)) = self.owed.front() {
            if let Some(Owed::Ready(bytes)) = self.owed.pop_front() {
                self.add_output(bytes);
            }
        }
    }

    /// Sends as much as the socket takes. Fails if the connection is to be closed: it is broken,
    /// its client does not read, or it ends and everything has been sent.
    pub(crate) fn flush(&mut self, unsent_max: usize) -> Result<(), Closed> {
        while self.is_writable && self.sent < self.output.len() {
            match self.stream.write(self.output.get(self.sent..).unwrap_or_default()) {
                Ok(0) => return Err(Closed),
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Closed),
            }
        }
        if self.sent == self.output.len() {
            self.sent = 0;
            self.output.clear();
            if self.output.capacity() > KEPT_BYTES {
                self.output = Vec::new();
            }
            if self.is_ending && self.owed.is_empty() {
                return Err(Closed);
            }
        } else if self.output.len() - self.sent > unsent_max {
            return Err(Closed);
        } else if self.sent > self.output.len() / 2 {
            // The bytes that were sent take no more memory than those that were not.
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}
