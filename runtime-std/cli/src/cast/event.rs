//! Events that a member's threads report to its main thread.

use std::io;

use tramontane_core::ids::NodeId;

use tramontane_local::exit::Failure;

/// An event in a member's process.
#[derive(Debug)]
pub(super) enum CastEvent {
    /// All lines of this member's input were sent, followed by the end marker.
    InputEnded,
    /// The input cannot be read, or one of its lines cannot be sent.
    InputFailed(Failure),
    /// The reason why one line of the input was not sent.
    Refused(String),
    /// The end of every member's input was delivered.
    AllEnded,
    /// A member sent a message of a kind that this program never sends.
    NotUnderstood(NodeId),
    /// The output cannot be written any longer.
    OutputFailed(io::Error),
}
