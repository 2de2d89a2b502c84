//! Events that a member's threads report to its main thread.

use std::io;

use tramontane_core::ids::NodeId;

use tramontane_local::exit::Failure;

/// An event in a member's process.
#[derive(Debug)]
pub(super) enum CastEvent {
    /// All lines of this member's input have been sent, followed by the end marker.
    InputEnded,
    /// The input cannot be read, or one of its lines cannot be sent.
    InputFailed(Failure),
    /// The reason that one line of the input was not sent.
    Refused(String),
    /// The end of every member's input has been delivered.
    AllEnded,
    /// A member sent a message of a kind that this program never sends.
    NotUnderstood(NodeId),
    /// The output can no longer be written.
    OutputFailed(io::Error),
}
