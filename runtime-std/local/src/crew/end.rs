//! The end of a worker.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// A worker's end: its exit status, or `None` if the worker has closed its output but still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End(pub Option<ExitStatus>);

impl fmt::Display for End {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.map(|status| (status.signal(), status.code())) {
            Some((Some(signal), _)) => write!(out, "was killed by signal {signal}"),
            Some((None, code)) => write!(out, "ended with status {}", code.unwrap_or(-1)),
            None => out.write_str("closed its output"),
        }
    }
}
