//! Prints the result of a command: one JSON object for programs, or text for people.

use std::io::{self, Write};

use serde::Serialize;

use crate::table::wrapped;

/// Writes a report to `out` as one line of JSON, or as text wrapped to the terminal's width.
///
/// # Errors
/// Fails with the operating system's error.
pub fn print<R: Serialize>(
    out: &mut impl Write,
    json: bool,
    report: &R,
    text: impl FnOnce(&R) -> String,
) -> io::Result<()> {
    let text = if json { serde_json::to_string(report)? + "\n" } else { wrapped(&text(report)) };
    out.write_all(text.as_bytes())?;
    out.flush()
}
