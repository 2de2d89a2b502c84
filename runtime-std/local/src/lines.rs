//! Records as lines of text: standard input line by line, and the printed form of messages.

use std::io::{self, BufRead};

use crate::exit::Failure;

/// Adds a message as one line, in which each newline becomes `\n`. Only in JSON does this differ
/// from a message that contains these two characters.
pub fn add_message(message: &[u8], to: &mut Vec<u8>) {
    let mut rest = message;
    while let Some(at) = memchr::memchr(b'\n', rest) {
        to.extend_from_slice(&rest[..at]);
        to.extend_from_slice(b"\\n");
        rest = &rest[at + 1..];
    }
    to.extend_from_slice(rest);
    to.push(b'\n');
}

/// A line of the input, without its newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'l> {
    /// The complete line.
    Whole(&'l [u8]),
    /// A line that is too long. Its content has been discarded.
    TooLong,
}

/// Splits bytes into lines as they arrive. Needs no more memory than the longest permitted line.
pub struct Cutter {
    line: Vec<u8>,
    limit: usize,
    is_too_long: bool,
    /// Whether the last line has been handed over. Its bytes may still be in the buffer.
    is_over: bool,
    /// Number of the line being cut, from 1.
    number: u64,
}

impl Cutter {
    /// Creates a cutter for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { line: Vec::new(), limit, is_too_long: false, is_over: false, number: 1 }
    }

    /// Consumes bytes up to the end of a line, and returns the line with its number. If the line is
    /// incomplete, consumes all bytes and returns `None`. A line that is whole in `bytes` is not
    /// copied.
    pub fn next<'l, 'b: 'l>(&'l mut self, bytes: &mut &'b [u8]) -> Option<(u64, Line<'l>)> {
        self.go_on();
        let end = memchr::memchr(b'\n', bytes);
        let (part, rest) = match end {
            Some(end) => (&bytes[..end], &bytes[end + 1..]),
            None => (*bytes, &bytes[bytes.len()..]),
        };
        *bytes = rest;
        if self.line.len() + part.len() > self.limit {
            self.is_too_long = true;
            self.line.clear();
        }
        if !self.is_too_long {
            if end.is_some() && self.line.is_empty() {
                self.is_over = true;
                return Some((self.number, Line::Whole(part)));
            }
            self.line.extend_from_slice(part);
        }
        end?;
        Some(self.hand_over())
    }

    /// Records the end of the input. Returns the last line if it has no newline.
    pub fn end(&mut self) -> Option<(u64, Line<'_>)> {
        self.is_begun().then(|| self.hand_over())
    }

    /// Returns whether a line has begun but is incomplete.
    pub fn is_begun(&mut self) -> bool {
        self.go_on();
        self.is_too_long || !self.line.is_empty()
    }

    /// Returns the number of the line that has begun, or else of the next line.
    pub fn number(&mut self) -> u64 {
        self.go_on();
        self.number
    }

    fn hand_over(&mut self) -> (u64, Line<'_>) {
        self.is_over = true;
        (self.number, if self.is_too_long { Line::TooLong } else { Line::Whole(&self.line) })
    }

    fn go_on(&mut self) {
        if std::mem::take(&mut self.is_over) {
            self.line.clear();
            self.is_too_long = false;
            self.number += 1;
        }
    }
}

/// Passes each line to the caller with its number, until the end of the input.
pub fn each_line<E: From<Failure>>(
    mut input: impl BufRead,
    limit: usize,
    mut each: impl FnMut(u64, Line<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut cutter = Cutter::new(limit);
    loop {
        let read = match input.fill_buf() {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(&error).into()),
        };
        let count = read.len();
        let mut bytes = read;
        while let Some((number, line)) = cutter.next(&mut bytes) {
            each(number, line)?;
        }
        input.consume(count);
        if count == 0 {
            return cutter.end().map_or(Ok(()), |(number, line)| each(number, line));
        }
    }
}

/// Creates the failure for input that cannot be read.
pub fn unreadable(error: &io::Error) -> Failure {
    let what = format_args!("cannot read the input: {error}");
    Failure::input(what, "give a readable input")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines that result from reading with a buffer of `buffer` bytes.
    fn cut(input: &[u8], limit: usize, buffer: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut lines = Vec::new();
        let input = io::BufReader::with_capacity(buffer, input);
        let done: Result<(), Failure> = each_line(input, limit, |number, line| {
            lines.push((
                number,
                if let Line::Whole(line) = line { Some(line.to_vec()) } else { None },
            ));
            Ok(())
        });
        done.expect("it can be read");
        lines
    }

    #[test]
    fn lines_are_unchanged_for_any_buffer_size() {
        for buffer in 1..12 {
            assert_eq!(cut(b"", 3, buffer), []);
            let lines: [&[u8]; 4] = [b"", b"", b"ab\r", b"\xff"];
            let lines: Vec<_> = (1..).zip(lines.map(|line| Some(line.to_vec()))).collect();
            assert_eq!(cut(b"\n\nab\r\n\xff", 3, buffer), lines);
        }
    }

    #[test]
    fn lines_after_a_too_long_line_are_read() {
        for buffer in 1..12 {
            let whole = |number, line: &[u8]| (number, Some(line.to_vec()));
            assert_eq!(
                cut(b"abc\nabcd\n\nd", 3, buffer),
                [whole(1, b"abc"), (2, None), whole(3, b""), whole(4, b"d")]
            );
            assert_eq!(cut(b"abcdefgh", 3, buffer), [(1, None)]);
        }
    }

    #[test]
    fn unfinished_line_is_detected() {
        let mut cutter = Cutter::new(3);
        assert!(cutter.next(&mut &b"ab"[..]).is_none());
        assert!(cutter.is_begun() && cutter.number() == 1);
        assert_eq!(cutter.next(&mut &b"\n"[..]), Some((1, Line::Whole(b"ab"))));
        assert!(!cutter.is_begun() && cutter.number() == 2 && cutter.end().is_none());
    }
}
