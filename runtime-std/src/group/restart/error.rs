//! The reasons why an attempt to restart fails.

use tramontane_core::ids::{NodeId, SubgroupId};

use crate::group::durable::comparison::SharedLogError;
use crate::group::durable::data_error::DataError;
use crate::group::durable::taking_over::TakeOverError;
use crate::group::state::folder::StateError;

/// The reason why part of an attempt failed. Another attempt may succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestartError {
    #[error("lost node {node}: {why}")]
    Gone { node: NodeId, why: String },
    #[error("node {node}: {why}")]
    Refused { node: NodeId, why: String },
    #[error("the data has changed since the nodes answered")]
    Changed,
    #[error("this node cannot read its own data")]
    Unanswered,
    #[error("this node has already restarted the group")]
    GoesOn,
    #[error("a message is invalid")]
    Malformed,
    #[error("record {from} of subgroup {subgroup} could not be repaired")]
    NotRepaired { subgroup: SubgroupId, from: u64 },
    #[error("the log of subgroup {0} contains no state")]
    NoState(SubgroupId),
    #[error(transparent)]
    Log(#[from] TakeOverError),
    #[error(transparent)]
    Read(#[from] SharedLogError),
    #[error(transparent)]
    State(#[from] StateError),
}

impl RestartError {
    /// Returns whether this node's disk has failed. If so, this process can no longer use its log.
    pub(super) fn is_of_disk(&self) -> bool {
        use tramontane_log::{CutError, ReadError, ReplaceError, WriteError};
        let cannot_read = |error: &ReadError| matches!(error, ReadError::Io { .. });
        let cannot_write = |error: &WriteError| !matches!(error, WriteError::OutOfOrder { .. });
        match self {
            Self::State(_) | Self::Log(TakeOverError::Data(_)) => true,
            Self::Log(
                TakeOverError::Write(error)
                | TakeOverError::Cut(CutError::Write(error))
                | TakeOverError::Replace(ReplaceError::Write(error)),
            ) => cannot_write(error),
            Self::Log(TakeOverError::Cut(CutError::Read(error)) | TakeOverError::Read(error))
            | Self::Read(SharedLogError::Read(error)) => cannot_read(error),
            Self::Gone { .. }
            | Self::Refused { .. }
            | Self::Changed
            | Self::Unanswered
            | Self::GoesOn
            | Self::Malformed
            | Self::NotRepaired { .. }
            | Self::NoState(_)
            | Self::Log(_)
            | Self::Read(_) => false,
        }
    }
}

impl From<DataError> for RestartError {
    fn from(error: DataError) -> Self {
        Self::Log(error.into())
    }
}

impl From<tramontane_log::WriteError> for RestartError {
    fn from(error: tramontane_log::WriteError) -> Self {
        Self::Log(error.into())
    }
}

impl From<tramontane_log::ReadError> for RestartError {
    fn from(error: tramontane_log::ReadError) -> Self {
        Self::Log(error.into())
    }
}
