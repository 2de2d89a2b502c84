//! What the threads of a node report to its main thread.

use std::io;

use tramontane_local::exit::Failure;

/// What happens to a node.
#[derive(Debug)]
pub(super) enum NodeEvent {
    /// The input ended, and all of it was sent.
    InputEnded,
    /// Something that this node needs does not work: it leaves.
    Failed(Failure),
    /// Nothing can be written any more.
    OutputFailed(io::Error),
    /// To be printed on standard error.
    Notice(String),
    /// Part of the input was not sent, for a reason of its own; to be printed too.
    Refused(String),
}
