//! The reasons for disconnecting a client.

use tramontane_control::SessionError;
use tramontane_control::client_messages::ClientRefusal;

/// The reason why a client's connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cut {
    /// The client left, or its connection failed.
    #[error(transparent)]
    Gone(#[from] SessionError),
    /// The client sent something that no client of this program sends.
    #[error("it sent an invalid message")]
    Malformed,
    /// The client is refused, and receives the reason.
    #[error("{0}")]
    Refused(ClientRefusal),
    /// The client has announced that it is leaving.
    #[error("it has ended")]
    Ended,
}
