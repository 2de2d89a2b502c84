//! What a command found: one JSON object for programs, or text for people.

use std::io::{self, Write};

use serde::Serialize;

use crate::table::wrapped;

/// Writes a report to `out`: as one line of JSON, or as its text, cut to a terminal's width.
///
/// # Errors
/// What the operating system says.
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
