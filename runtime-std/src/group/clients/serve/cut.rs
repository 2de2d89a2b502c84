//! The reasons why a client is cut off.

use tramontane_control::SessionError;
use tramontane_control::client_messages::ClientRefusal;

/// The reason why a client's connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cut {
    /// The client left, or its connection failed.
    #[error(transparent)]
    Gone(#[from] SessionError),
    /// It sends what no client of this program sends.
    #[error("it sent an invalid message")]
    Malformed,
    /// The client is refused, and receives the reason.
    #[error("{0}")]
    Refused(ClientRefusal),
    /// The client has announced its end.
    #[error("it has ended")]
    Ended,
}
