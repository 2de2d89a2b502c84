//! The reasons why an attempt to join fails, and the time limits for its messages.

use std::time::Duration;

use tramontane_control::{OpenSessionError, SessionError};
use tramontane_core::ids::{NodeId, SubgroupId};

use crate::group::durable::data_error::DataError;
use crate::group::durable::taking_over::TakeOverError;

/// Time limit for a member's next message. It is long, because the member may be in an upcall.
pub(crate) const STALL: Duration = Duration::from_secs(60);

/// The pause between attempts.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Room for the encoding around a message, in bytes.
pub(crate) const AROUND: u64 = 4096;

/// The reason why an attempt to join failed. In most cases, another attempt may succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    #[error("no member of the group was found")]
    Nobody,
    #[error("the group no longer has any members")]
    AllGone,
    #[error("node {node}: {why}")]
    Refused { node: NodeId, why: OpenSessionError },
    #[error("{0}")]
    NotNow(String),
    #[error(
        "this node cannot reach {}, and a joining node must reach every member; check the network \
         between them",
        named(.0)
    )]
    Unreached(Vec<NodeId>),
    #[error("no member of subgroup {0} answers")]
    NoSupplier(SubgroupId),
    #[error("the connection to the member that supplied the state failed: {0}")]
    Session(#[from] SessionError),
    #[error("cannot connect to a member: {0}")]
    OpenSession(#[from] OpenSessionError),
    #[error("a member sent an invalid message")]
    Malformed,
    #[error("the state cannot be restored: {0}")]
    Restore(std::io::Error),
    #[error("the restored data cannot be logged: {0}")]
    Log(TakeOverError),
    #[error(
        "subgroup {0} lost all its members after this node had restored its state, and restarts \
         without it"
    )]
    Outdated(SubgroupId),
    #[error("the view that admitted this node ended before the node had the whole state")]
    ViewOver,
    #[error("the time limit passed before the whole state was restored; allow more time")]
    TimeUp,
}

/// Lists nodes in readable form.
pub(crate) fn named(nodes: &[NodeId]) -> String {
    let names: Vec<_> = nodes.iter().map(|node| format!("node {node}")).collect();
    names.join(" and ")
}

impl From<TakeOverError> for AttemptError {
    fn from(error: TakeOverError) -> Self {
        Self::Log(error)
    }
}

impl From<DataError> for AttemptError {
    fn from(error: DataError) -> Self {
        Self::Log(error.into())
    }
}

impl AttemptError {
    /// Returns whether the failure is the supplying member's, so that another member may succeed.
    pub(crate) const fn is_of_supplier(&self) -> bool {
        match self {
            Self::Nobody | Self::Refused { .. } | Self::NotNow(_) | Self::Malformed => true,
            Self::Session(error) => !matches!(error, SessionError::Stopped),
            Self::OpenSession(error) => !matches!(error, OpenSessionError::Cancelled),
            Self::NoSupplier(_)
            | Self::Unreached(_)
            | Self::Restore(_)
            | Self::Log(_)
            | Self::AllGone
            | Self::Outdated(_)
            | Self::ViewOver
            | Self::TimeUp => false,
        }
    }

    /// Returns whether this process ended the attempt.
    pub(crate) const fn is_stopped(&self) -> bool {
        matches!(
            self,
            Self::Session(SessionError::Stopped) | Self::OpenSession(OpenSessionError::Cancelled)
        )
    }
}
