//! Writes events as lines.

use std::io::{self, Write};

use super::event::Event;

/// Writes a history with one record per line.
pub struct Writer<W> {
    stream: W,
}

impl<W: Write> Writer<W> {
    /// Creates a writer to a stream, which should be buffered.
    pub fn new(stream: W) -> Self {
        Self { stream }
    }

    /// Writes one record.
    ///
    /// # Errors
    /// Fails with the error of the stream.
    pub fn write(&mut self, event: &Event<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.stream, event)?;
        self.stream.write_all(b"\n")
    }

    /// Flushes everything and returns the stream.
    ///
    /// # Errors
    /// Fails with the error of the stream.
    pub fn finish(mut self) -> io::Result<W> {
        self.stream.flush()?;
        Ok(self.stream)
    }
}
