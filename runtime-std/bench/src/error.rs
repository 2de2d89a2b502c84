//! Reasons why an experiment could not be run.

use tramontane_core::layout::LayoutError;
use tramontane_core::memory::OutOfRow;
use tramontane_local::crew::{AttachError, CrewError};
use tramontane_local::group::LocalError;
use tramontane_local::interrupt::WatchError;
use tramontane_runtime::blocks::{BlockMemoryError, CreateError};
use tramontane_runtime::group::{ConnectError, DescriptionError, StartError};
use tramontane_runtime::member::{SendError, Stopped};
use tramontane_runtime::shared_memory;

/// The reason that an experiment could not be run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Arguments that do not describe an experiment; the text contains the remedy.
    #[error("{0}")]
    Arguments(String),
    /// A problem with the machine, or with another process of the experiment.
    #[error("{0}")]
    Setup(String),
    /// A folder to be measured is not writable, or is full.
    #[error("cannot write to {}: {source}", path.display())]
    Disk {
        /// The folder that was measured.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The group is invalid.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The members did not meet.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Remains of earlier processes cannot be removed.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// The members have nowhere to meet.
    #[error(transparent)]
    Place(#[from] LocalError),
    /// The processes could not be started, one of them ended early, or this process was
    /// interrupted.
    #[error(transparent)]
    Crew(#[from] CrewError),
    /// This process is not a worker of an experiment.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// Signals cannot be watched for.
    #[error(transparent)]
    Signals(#[from] WatchError),
    /// A member stopped during the run.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A guarantee of the group was violated.
    #[error("{0}")]
    Broken(String),
    /// A send failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The report cannot be written.
    #[error("cannot write the report: {0}")]
    Output(#[from] std::io::Error),
    /// A probe's peer did not answer, or its memory is too small.
    #[error("the probe's peer did not answer within a minute")]
    Probe,
}

impl From<OutOfRow> for BenchError {
    fn from(_: OutOfRow) -> Self {
        Self::Probe
    }
}

impl From<DescriptionError> for BenchError {
    fn from(error: DescriptionError) -> Self {
        match error {
            DescriptionError::Layout(error) => error.into(),
            error => Self::Place(error.into()),
        }
    }
}

impl From<ConnectError> for BenchError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Description(error) => error.into(),
            ConnectError::Start(error) => error.into(),
            error => Self::Setup(error.to_string()),
        }
    }
}

impl From<CreateError> for BenchError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Stopped(stopped) => stopped.into(),
            error => Self::Setup(error.to_string()),
        }
    }
}

impl From<BlockMemoryError> for BenchError {
    fn from(error: BlockMemoryError) -> Self {
        Self::Setup(error.to_string())
    }
}
