//! The reasons why a joining node is not supplied.

use std::time::Duration;

use tramontane_control::SessionError;

use super::queue::MemberEnded;
use crate::group::durable::comparison::SharedLogError;

/// The maximum time for which a joining node may receive nothing.
pub(crate) const STALL: Duration = Duration::from_secs(30);

/// The reason why a joining node is no longer supplied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SupplyError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("it sent an invalid message")]
    Malformed,
    #[error("this member has ended")]
    Ended,
    #[error("it cannot reach all members")]
    Unreached,
    #[error("it is too slow")]
    TooSlow,
    #[error("this member's log cannot supply it: {0}")]
    Log(SharedLogError),
}

impl From<MemberEnded> for SupplyError {
    fn from(_: MemberEnded) -> Self {
        Self::Ended
    }
}
