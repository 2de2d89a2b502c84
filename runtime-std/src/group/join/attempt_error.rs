//! Why an attempt to join failed, and how long its messages may take.

use std::time::Duration;

use tramontane_control::{OpenSessionError, SessionError};
use tramontane_core::ids::{NodeId, SubgroupId};

use crate::group::durable::data_error::DataError;
use crate::group::durable::taking_over::TakeOverError;

/// How long a member may take until its next message: an upcall may be under way.
pub(crate) const STALL: Duration = Duration::from_secs(60);

/// Between two attempts.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Room for the encoding around a message.
pub(crate) const AROUND: u64 = 4096;

/// Why an attempt to join failed. Most are worth another.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    #[error("no member of the group was found")]
    Nobody,
    #[error("no process is a member of the group any more")]
    AllGone,
    #[error("node {node}: {why}")]
    Refused { node: NodeId, why: OpenSessionError },
    #[error("{0}")]
    NotNow(String),
    #[error(
        "this node does not reach {}, and every member must be reached by a node that joins; look at the network between the two",
        named(.0)
    )]
    Unreached(Vec<NodeId>),
    #[error("subgroup {0} has members, and none of them answers")]
    NoSupplier(SubgroupId),
    #[error("a member was lost while it supplied this one: {0}")]
    Session(#[from] SessionError),
    #[error("a member cannot be called: {0}")]
    OpenSession(#[from] OpenSessionError),
    #[error("a member sent a message that makes no sense here")]
    Malformed,
    #[error("the state cannot be restored: {0}")]
    Restore(std::io::Error),
    #[error("what was restored cannot be logged: {0}")]
    Log(TakeOverError),
    #[error(
        "subgroup {0} lost all its members after its state was taken over here, and begins anew"
    )]
    Outdated(SubgroupId),
    #[error("the view that let this node in ended before it had all of the state")]
    ViewOver,
    #[error("the time was up before all of the state was taken over; allow more time")]
    TimeUp,
}

/// Nodes, for people.
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
    /// Whether the failure is that member's, and another member may do.
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

    /// Whether this process ended the attempt.
    pub(crate) const fn is_stopped(&self) -> bool {
        matches!(
            self,
            Self::Session(SessionError::Stopped) | Self::OpenSession(OpenSessionError::Cancelled)
        )
    }
}
