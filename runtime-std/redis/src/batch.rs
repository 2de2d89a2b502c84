//! Batches: requests that travel through the group's order as one command.
//!
//! A request is the number of its command, the number of its arguments, and each argument after
//! its length; numbers are LEB128. The number 0 ends a run: requests of one connection, which are
//! answered together.

use serde::{Deserialize, Serialize};

use crate::refusal::CommandRefusal;
use crate::text::Text;

/// Bytes of an encoded batch in addition to its requests: the layer's format, two numbers of ten
/// bytes, and a length.
pub(crate) const OVERHEAD: usize = 32;

/// The requests that one command of the group contains.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Batch {
    /// The process that received the requests, and that answers them.
    pub(crate) origin: u64,
    /// That process' clock, in milliseconds since 1970.
    pub(crate) now_ms: u64,
    /// The encoded requests.
    pub(crate) requests: Text,
}

/// Requests that are being encoded.
#[derive(Debug, Default)]
pub(crate) struct Requests(Vec<u8>);

impl Requests {
    /// Adds a request.
    pub(crate) fn push<'b>(
        &mut self,
        verb: u8,
        arguments: impl ExactSizeIterator<Item = &'b [u8]>,
    ) {
        self.0.push(verb);
        put_number(&mut self.0, arguments.len());
        for argument in arguments {
            self.argument(argument);
        }
    }

    /// Adds bytes with their length in front.
    pub(crate) fn argument(&mut self, bytes: &[u8]) {
        put_number(&mut self.0, bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Adds all requests of `others`.
    pub(crate) fn append(&mut self, others: Self) {
        self.0.extend_from_slice(&others.0);
    }

    /// Ends a run.
    pub(crate) fn end_run(&mut self) {
        self.0.push(0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_text(self) -> Text {
        Text(self.0)
    }
}

/// Requests of one connection that are answered together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestRun {
    /// The connection's token.
    pub(crate) token: u64,
    /// The number of requests.
    pub(crate) requests: usize,
}

/// A batch that is complete.
#[derive(Debug, Default)]
pub(crate) struct CollectedBatch {
    pub(crate) requests: Requests,
    pub(crate) runs: Vec<RequestRun>,
    /// Whether the requests are [slow](crate::paced) ones.
    pub(crate) is_slow: bool,
}

/// The maximum number of bytes that a request needs, in addition to its arguments.
pub(crate) const fn request_overhead(arguments: usize) -> usize {
    // A length of up to 2^28 takes four bytes, and the end of the run one.
    arguments.saturating_mul(4).saturating_add(12)
}

fn put_number(to: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        to.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    to.push((number & 0x7f) as u8);
}

/// Reads encoded requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestsReader<'b>(&'b [u8]);

impl<'b> RequestsReader<'b> {
    pub(crate) const fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of the next command, and replaces `arguments` by its arguments. At the
    /// end of a run, the number is 0. Returns `None` at the end.
    pub(crate) fn next(
        &mut self,
        arguments: &mut Vec<&'b [u8]>,
    ) -> Result<Option<u8>, CommandRefusal> {
        arguments.clear();
        let Some((&verb, rest)) = self.0.split_first() else { return Ok(None) };
        self.0 = rest;
        if verb == 0 {
            return Ok(Some(verb));
        }
        for _ in 0..self.number()? {
            arguments.push(self.argument()?);
        }
        Ok(Some(verb))
    }

    /// Reads bytes with their length in front.
    pub(crate) fn argument(&mut self) -> Result<&'b [u8], CommandRefusal> {
        let length = self.number()?;
        let (argument, rest) = self.0.split_at_checked(length).ok_or(CommandRefusal::MALFORMED)?;
        self.0 = rest;
        Ok(argument)
    }

    fn number(&mut self) -> Result<usize, CommandRefusal> {
        let mut number = 0_usize;
        for shift in (0..35).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(CommandRefusal::MALFORMED)?;
            self.0 = rest;
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(CommandRefusal::MALFORMED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_requests_return_unchanged() {
        let long = vec![7; 300];
        let mut requests = Requests::default();
        requests.push(3, [b"key".as_slice(), &long].into_iter());
        requests.end_run();
        let bytes = requests.into_text();
        let (mut reader, mut arguments) = (RequestsReader::new(&bytes), Vec::new());
        assert_eq!(reader.next(&mut arguments), Ok(Some(3)));
        assert_eq!(arguments, [b"key".as_slice(), &long]);
        assert_eq!(reader.next(&mut arguments), Ok(Some(0)));
        assert_eq!(reader.next(&mut arguments), Ok(None));
        for length in 1..bytes.len() - 1 {
            let mut cut = RequestsReader::new(&bytes[..length]);
            assert_eq!(cut.next(&mut arguments), Err(CommandRefusal::MALFORMED), "{length}");
        }
    }
}
