//! What the threads of a member report to its main thread.

use std::io;

use tramontane_core::ids::NodeId;

use tramontane_local::exit::Failure;

/// What happens to a member.
#[derive(Debug)]
pub(super) enum CastEvent {
    /// All its input was sent, and that it ended.
    InputEnded,
    /// The input cannot be read, or a line of it cannot be sent.
    InputFailed(Failure),
    /// A line of the input is not sent, and this is why.
    Refused(String),
    /// The end of every member's input was delivered.
    AllEnded,
    /// A member sent what this program never does.
    NotUnderstood(NodeId),
    /// Nothing can be written any more.
    OutputFailed(io::Error),
}
