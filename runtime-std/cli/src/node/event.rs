//! Events that a node's threads report to its main thread.

use std::io;

use tramontane_local::exit::Failure;

/// An event in a node's process.
#[derive(Debug)]
pub(super) enum NodeEvent {
    /// The input has ended, and all of it has been sent.
    InputEnded,
    /// Something that this node needs has failed, so it leaves.
    Failed(Failure),
    /// The output can no longer be written.
    OutputFailed(io::Error),
    /// A notice to print on standard error.
    Notice(String),
    /// The reason that part of the input was not sent, also to be printed.
    Refused(String),
}
