//! Events to lines.

use std::io::{self, Write};

use super::event::Event;

/// Writes a history, one record a line.
pub struct Writer<W> {
    stream: W,
}

impl<W: Write> Writer<W> {
    /// Writes to a stream, which had better be buffered.
    pub fn new(stream: W) -> Self {
        Self { stream }
    }

    /// Writes one record.
    ///
    /// # Errors
    /// What the stream says.
    pub fn write(&mut self, event: &Event<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.stream, event)?;
        self.stream.write_all(b"\n")
    }

    /// Hands everything on, and the stream back.
    ///
    /// # Errors
    /// What the stream says.
    pub fn finish(mut self) -> io::Result<W> {
        self.stream.flush()?;
        Ok(self.stream)
    }
}
