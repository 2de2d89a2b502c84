//! Requests, as bytes of a stream: arrays of bulk strings, or lines of words.
//!
//! Registry crates were considered. Those that are kept parse replies as well as requests, build a
//! tree, start over for every part that arrives, and know no limit below 512 MB. This reader
//! continues at the byte at which it stopped, and allocates nothing for an announced length. It
//! skips a request that is too large: the client gets an error and keeps its connection.
//!
//! # Invariants
//! - Ranges of arguments are relative to the first byte of the request. The caller keeps it until
//!   the request is complete.
//! - While a request is skipped, every byte is consumed at once.

use std::ops::Range;

use super::line;
use crate::batch::request_overhead;

/// The maximum length of a line, in bytes. Redis has the same limit.
const LINE_MAX: usize = 64 << 10;

/// The maximum number of arguments that a client may announce. Redis has the same limit.
const ARGUMENTS_MAX: usize = 1 << 20;

/// The maximum length of an argument that a client may announce. Redis has the same limit.
const ANNOUNCED_MAX: usize = 512 << 20;

/// Memory for the places of arguments that does not count towards a request's limit, in bytes.
const HELD_FREE: usize = 64 << 10;

/// The limits of requests that are accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimits {
    /// The maximum number of bytes of a request's arguments. A larger request is skipped.
    pub(crate) request_max: usize,
}

/// The outcome of reading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// The request is incomplete. `consumed` bytes are no longer needed.
    Incomplete { consumed: usize },
    /// A complete request, whose arguments are [`RequestReader::arguments`].
    Request { consumed: usize },
    /// A complete request that was a line of words.
    Line { consumed: usize, words: Vec<Vec<u8>> },
    /// A request that was skipped, because it is encoded in this number of bytes.
    TooLarge { consumed: usize, bytes: usize },
    /// A line without words.
    Empty { consumed: usize },
    /// Bytes that are not a request. The connection cannot continue.
    Malformed(&'static str),
}

/// Reads one client's requests.
#[derive(Debug, Default)]
pub(crate) struct RequestReader {
    /// The next byte to read, relative to the first byte that the caller keeps.
    at: usize,
    /// The number of arguments that are to come, in an array.
    left: Option<usize>,
    /// The length of the argument whose bytes come next.
    length: Option<usize>,
    /// The number of bytes of an argument that are to be skipped, with the end of its line.
    to_skip: usize,
    arguments: Vec<Range<usize>>,
    /// The number of arguments so far, with those that were skipped.
    count: usize,
    /// The number of bytes of the arguments so far.
    bytes: usize,
    is_skipping: bool,
    is_complete: bool,
}

impl RequestReader {
    /// Returns the arguments of a complete request, in the bytes that were read.
    pub(crate) fn arguments(&self) -> &[Range<usize>] {
        &self.arguments
    }

    /// Reads on. `input` begins with the first byte that was not consumed.
    pub(crate) fn read(&mut self, input: &[u8], limits: RequestLimits) -> Parsed {
        if self.is_complete {
            let arguments = std::mem::take(&mut self.arguments);
            *self = Self { arguments, ..Self::default() };
            self.arguments.clear();
        }
        match self.read_to_end(input, limits) {
            Ok(Some(parsed)) => {
                self.is_complete = true;
                parsed
            }
            Ok(None) if self.is_skipping => {
                let consumed = std::mem::take(&mut self.at);
                Parsed::Incomplete { consumed }
            }
            Ok(None) => Parsed::Incomplete { consumed: 0 },
            Err(why) => Parsed::Malformed(why),
        }
    }

    fn read_to_end(
        &mut self,
        input: &[u8],
        limits: RequestLimits,
    ) -> Result<Option<Parsed>, &'static str> {
        let mut left = match self.left {
            Some(left) => left,
            None => {
                let Some(line) = self.line(input)? else { return Ok(None) };
                match input.get(line.clone()).and_then(<[u8]>::split_first) {
                    Some((b'*', count)) => {
                        let count = number(count).ok_or("invalid multibulk length")?;
                        // Redis ignores an empty array too.
                        let count = usize::try_from(count).unwrap_or(0);
                        if count > ARGUMENTS_MAX {
                            return Err("invalid multibulk length");
                        }
                        count
                    }
                    _ => return self.read_line(input, line, limits).map(Some),
                }
            }
        };
        self.left = Some(left);
        while left > 0 {
            if !self.argument(input, limits)? {
                return Ok(None);
            }
            left -= 1;
            self.left = Some(left);
        }
        let consumed = self.at;
        Ok(Some(if self.is_skipping || self.bytes > limits.request_max {
            let bytes = self.bytes.saturating_add(request_overhead(self.count));
            Parsed::TooLarge { consumed, bytes }
        } else if self.arguments.is_empty() {
            Parsed::Empty { consumed }
        } else {
            Parsed::Request { consumed }
        }))
    }

    /// Reads one argument. Returns false if it is incomplete.
    fn argument(&mut self, input: &[u8], limits: RequestLimits) -> Result<bool, &'static str> {
        if self.length.is_none() && self.to_skip == 0 && !self.header(input, limits)? {
            return Ok(false);
        }
        let there = input.len() - self.at;
        if self.is_skipping {
            let skipped = there.min(self.to_skip);
            self.at += skipped;
            self.to_skip -= skipped;
            return Ok(self.to_skip == 0);
        }
        let length = self.length.unwrap_or(0);
        if there < length + 2 {
            return Ok(false);
        }
        let end = self.at + length;
        if input.get(end..end + 2) != Some(b"\r\n") {
            return Err("expected the end of a line after an argument");
        }
        self.arguments.push(self.at..end);
        self.at = end + 2;
        self.length = None;
        Ok(true)
    }

    /// Reads the header of an argument. Returns false if it is incomplete.
    fn header(&mut self, input: &[u8], limits: RequestLimits) -> Result<bool, &'static str> {
        let Some(line) = self.line(input)? else { return Ok(false) };
        let Some((b'$', length)) = input.get(line).and_then(<[u8]>::split_first) else {
            return Err("expected '$'");
        };
        let length = number(length).and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| *length <= ANNOUNCED_MAX);
        let length = length.ok_or("invalid bulk length")?;
        self.count += 1;
        self.bytes = self.bytes.saturating_add(length);
        // An argument costs memory even if it is empty.
        let held = self.arguments.len().saturating_mul(size_of::<Range<usize>>());
        if self.bytes.saturating_add(held) > limits.request_max.saturating_add(HELD_FREE) {
            self.is_skipping = true;
            self.arguments = Vec::new();
        }
        if self.is_skipping {
            self.to_skip = length + 2;
        } else {
            self.length = Some(length);
        }
        Ok(true)
    }

    /// Reads a line, without its end.
    fn line(&mut self, input: &[u8]) -> Result<Option<Range<usize>>, &'static str> {
        let rest = input.get(self.at..).unwrap_or_default();
        let searched = rest.get(..LINE_MAX).unwrap_or(rest);
        let Some(end) = searched.iter().position(|byte| *byte == b'\n') else {
            return if rest.len() >= LINE_MAX { Err("too big inline request") } else { Ok(None) };
        };
        let start = self.at;
        self.at += end + 1;
        let has_return = end > 0 && rest.get(end - 1) == Some(&b'\r');
        Ok(Some(start..start + end - usize::from(has_return)))
    }

    /// Reads the words of a line as a request.
    fn read_line(
        &self,
        input: &[u8],
        line: Range<usize>,
        limits: RequestLimits,
    ) -> Result<Parsed, &'static str> {
        let words = line::words(input.get(line).unwrap_or_default());
        let words = words.ok_or("unbalanced quotes in request")?;
        let (consumed, bytes) = (self.at, words.iter().map(Vec::len).sum::<usize>());
        Ok(if words.is_empty() {
            Parsed::Empty { consumed }
        } else if bytes > limits.request_max {
            Parsed::TooLarge { consumed, bytes: bytes + request_overhead(words.len()) }
        } else {
            Parsed::Line { consumed, words }
        })
    }
}

/// Parses a decimal number of a header.
fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: RequestLimits = RequestLimits { request_max: 1 << 20 };

    /// Reads all requests from bytes that arrive in parts of this size.
    fn read_all(
        bytes: &[u8],
        part: usize,
        limits: RequestLimits,
    ) -> Result<Vec<Vec<Vec<u8>>>, String> {
        let (mut reader, mut kept, mut requests) = (RequestReader::default(), Vec::new(), vec![]);
        for part in bytes.chunks(part) {
            kept.extend_from_slice(part);
            loop {
                let consumed = match reader.read(&kept, limits) {
                    Parsed::Incomplete { consumed } => {
                        kept.drain(..consumed);
                        break;
                    }
                    Parsed::Request { consumed } => {
                        let arguments = reader.arguments().iter();
                        requests.push(arguments.map(|at| kept[at.clone()].to_vec()).collect());
                        consumed
                    }
                    Parsed::Line { consumed, words } => {
                        requests.push(words);
                        consumed
                    }
                    Parsed::TooLarge { consumed, bytes } => {
                        requests.push(vec![format!("{bytes} bytes").into_bytes()]);
                        consumed
                    }
                    Parsed::Empty { consumed } => consumed,
                    Parsed::Malformed(why) => return Err(why.to_owned()),
                };
                kept.drain(..consumed);
            }
        }
        Ok(requests)
    }

    #[test]
    fn requests_and_lines_are_read_in_any_parts() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$0\r\n\r\nPING  now\r\n\r\n*0\r\n*1\r\n$4\r\nQUIT\r\n";
        let expected: Vec<Vec<Vec<u8>>> = vec![
            vec![b"GET".to_vec(), vec![]],
            vec![b"PING".to_vec(), b"now".to_vec()],
            vec![b"QUIT".to_vec()],
        ];
        for part in 1..bytes.len() {
            assert_eq!(read_all(bytes, part, LIMITS).as_ref(), Ok(&expected), "parts of {part}");
        }
    }

    #[test]
    fn too_large_request_is_skipped_in_any_parts() {
        let limits = RequestLimits { request_max: 10 };
        let long = "x".repeat(HELD_FREE + 20);
        let bytes =
            format!("*3\r\n$3\r\nSET\r\n${0}\r\n{long}\r\n$1\r\n\n\r\nPING\r\n", long.len());
        let too_large = format!("{} bytes", long.len() + 4 + request_overhead(3));
        let expected = vec![vec![too_large.into_bytes()], vec![b"PING".to_vec()]];
        for part in [1, 2, 3, 7, 1000, bytes.len()] {
            assert_eq!(read_all(bytes.as_bytes(), part, limits).as_ref(), Ok(&expected), "{part}");
        }
    }

    #[test]
    fn malformed_bytes_are_refused() {
        for (bytes, why) in [
            ("*x\r\n", "invalid multibulk length"),
            ("*99999999\r\n", "invalid multibulk length"),
            ("*1\r\n:1\r\n", "expected '$'"),
            ("*1\r\n$-1\r\n", "invalid bulk length"),
            ("*1\r\n$999999999999\r\n", "invalid bulk length"),
            ("SET k \"v\r\n", "unbalanced quotes in request"),
            ("*1\r\n$1\r\nabc\r\n", "expected the end of a line after an argument"),
        ] {
            assert_eq!(read_all(bytes.as_bytes(), 64, LIMITS), Err(why.to_owned()), "{bytes:?}");
        }
        let line = vec![b'x'; LINE_MAX];
        assert_eq!(read_all(&line, 64, LIMITS), Err("too big inline request".to_owned()));
    }

    proptest! {
        #[test]
        fn independent_encoder_is_understood(
            requests in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..5), 1..5),
            part in 1_usize..40,
        ) {
            use resp_rs::resp2::{Frame, frame_to_bytes};
            let mut bytes = Vec::new();
            for request in &requests {
                let bulk = |argument: &Vec<u8>| Frame::BulkString(Some(argument.clone().into()));
                let frame = Frame::Array(Some(request.iter().map(bulk).collect()));
                bytes.extend_from_slice(&frame_to_bytes(&frame));
            }
            prop_assert_eq!(read_all(&bytes, part, LIMITS), Ok(requests));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>, part in 1_usize..40) {
            let _ = read_all(&bytes, part, LIMITS);
        }
    }
}
