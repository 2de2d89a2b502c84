//! Experiments: the paper's continuous sending, over shared memory or in the simulator, and probes of the
//! machine's limit to compare with.

pub mod probe;
pub mod touch;
pub mod worker;

use tramontane_core::layout::LayoutError;
use tramontane_core::memory::OutOfRow;

use crate::join::JoinError;
use crate::member::{SendError, Stopped};
use crate::shared_memory;

/// Why an experiment could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The arguments, or the machine.
    #[error("{0}")]
    Setup(String),
    /// The group is wrong.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The members did not come together.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The probe's processes did not come together.
    #[error(transparent)]
    Rendezvous(#[from] shared_memory::Error),
    /// A member stopped in mid-run.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A send failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A probe's peer did not answer, or its memory is too small.
    #[error("the probe's peer did not answer within a minute")]
    Probe,
}

impl From<OutOfRow> for BenchError {
    fn from(_: OutOfRow) -> Self {
        Self::Probe
    }
}
