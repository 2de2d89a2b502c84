//! Events that a node's threads report to its main thread.

use std::io;

use tramontane_local::exit::Failure;

/// An event in a node's process.
#[derive(Debug)]
pub(super) enum NodeEvent {
    /// The input ended, and all of it was sent.
    InputEnded,
    /// Something that this node needs has failed, so it leaves.
    Failed(Failure),
    /// The output cannot be written any longer.
    OutputFailed(io::Error),
    /// A notice to print on standard error.
    Notice(String),
    /// The reason why part of the input was not sent, to be printed too.
    Refused(String),
}
