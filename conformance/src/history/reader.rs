//! Numbered lines from a stream.

use std::io::BufRead;

use super::event::Event;
use super::line;

/// Maximum length of a line in bytes. A longer line is an error, because no record is nearly as
/// long.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// The problem with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The line is not a record: not JSON, not an object, or a field has the wrong type.
    #[error("not a record: {0}")]
    NotJson(String),
    /// A required field is missing.
    #[error("the record has no field \"{0}\"")]
    Lacks(&'static str),
    /// The line is not UTF-8.
    #[error("not valid UTF-8 at byte {0}")]
    NotUtf8(usize),
    /// The line is longer than [`LINE_BYTES_MAX`].
    #[error("longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The history's last line is incomplete, because its writer was stopped.
    #[error("the history ends in the middle of this line")]
    Cut,
    /// The stream failed.
    #[error("cannot be read: {0}")]
    Read(String),
    /// The record contradicts an earlier one.
    #[error("{0}")]
    Contradiction(String),
}

/// A line that could not be read, and the problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {trouble}")]
pub struct HistoryError {
    /// The line's number, from 1.
    pub line: u64,
    /// The problem with the line.
    pub trouble: Trouble,
}

/// Reads a history line by line, in memory bounded by the longest line.
pub struct Reader<R> {
    stream: R,
    buffer: Vec<u8>,
    line: u64,
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader of a stream.
    pub fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::new(), line: 0 }
    }

    /// Returns the next record and its line number, from 1, or `None` at the end. Empty lines are
    /// skipped.
    ///
    /// # Errors
    /// Fails with the problem of the line. Reading may continue with the next line, except after
    /// [`Trouble::TooLong`] and [`Trouble::Read`].
    pub fn next_event(&mut self) -> Result<Option<(u64, Event<'_>)>, HistoryError> {
        if !self.next_line()? {
            return Ok(None);
        }
        let number = self.line;
        let whole = self.buffer.last() == Some(&b'\n');
        let event = std::str::from_utf8(&self.buffer)
            .map_err(|error| Trouble::NotUtf8(error.valid_up_to()))
            .and_then(|text| line::parse(text.trim_ascii()));
        match event {
            Ok(event) => Ok(Some((number, event))),
            Err(trouble) if whole => Err(HistoryError { line: number, trouble }),
            Err(_) => Err(HistoryError { line: number, trouble: Trouble::Cut }),
        }
    }

    /// Fills the buffer with the next line that is not empty.
    fn next_line(&mut self) -> Result<bool, HistoryError> {
        loop {
            self.buffer.clear();
            self.line += 1;
            // Reading one byte more than allowed distinguishes a line that is too long from one
            // that just fits.
            let mut limited = std::io::Read::take(&mut self.stream, LINE_BYTES_MAX as u64 + 1);
            let read = limited.read_until(b'\n', &mut self.buffer).map_err(|error| {
                HistoryError { line: self.line, trouble: Trouble::Read(error.to_string()) }
            })?;
            if read == 0 {
                return Ok(false);
            }
            if read > LINE_BYTES_MAX {
                return Err(HistoryError { line: self.line, trouble: Trouble::TooLong });
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn troubles(bytes: &[u8]) -> Vec<Result<u64, (u64, Trouble)>> {
        let mut reader = Reader::new(bytes);
        let mut seen = Vec::new();
        loop {
            match reader.next_event() {
                Ok(None) => return seen,
                Ok(Some((line, _))) => seen.push(Ok(line)),
                Err(HistoryError { line, trouble }) => {
                    let last = matches!(trouble, Trouble::TooLong);
                    seen.push(Err((line, trouble)));
                    if last {
                        return seen;
                    }
                }
            }
        }
    }

    const START: &[u8] = br#"{"ev":"start","t_ns":1,"node":"a","inc":1}"#;

    #[test]
    fn line_numbers_include_empty_lines() {
        let text = [START, b"\n\n  \r\n", START, b"\r\n"].concat();
        assert_eq!(troubles(&text), [Ok(1), Ok(4)]);
    }

    #[test]
    fn complete_last_line_needs_no_line_feed() {
        assert_eq!(troubles(START), [Ok(1)]);
        assert_eq!(troubles(&START[..20]), [Err((1, Trouble::Cut))]);
    }

    #[test]
    fn invalid_line_does_not_hide_the_next_line() {
        let text = [b"\xff\n" as &[u8], START, b"\n"].concat();
        assert_eq!(troubles(&text), [Err((1, Trouble::NotUtf8(0))), Ok(2)]);
    }

    #[test]
    fn endless_line_is_refused_in_bounded_memory() {
        let text = vec![b'x'; LINE_BYTES_MAX * 3];
        assert_eq!(troubles(&text), [Err((1, Trouble::TooLong))]);
    }
}
