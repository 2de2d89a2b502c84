//! A report as one JSON object, or as text for people.

use std::io::Write;

use serde::Serialize;

use crate::error::BenchError;
use tramontane_local::table::wrapped;

/// Writes a report to `out`.
///
/// # Errors
/// [`BenchError::Output`] if it cannot be written.
pub(crate) fn print(
    out: &mut impl Write,
    json: bool,
    report: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), BenchError> {
    let text = if json {
        serde_json::to_string(report).map_err(|error| BenchError::Setup(error.to_string()))? + "\n"
    } else {
        wrapped(&text())
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(BenchError::Output)
}
