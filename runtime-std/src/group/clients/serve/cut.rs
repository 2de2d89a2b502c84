//! Why a client is cut off.

use tramontane_control::SessionError;
use tramontane_control::client_messages::ClientRefusal;

/// Why a client's connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cut {
    /// It went, or its connection failed.
    #[error(transparent)]
    Gone(#[from] SessionError),
    /// It sends what no client of this program sends.
    #[error("it sent what makes no sense")]
    Malformed,
    /// It is told so.
    #[error("{0}")]
    Refused(ClientRefusal),
    /// It has said that it ends.
    #[error("it has ended")]
    Ended,
}
