//! The reasons why a run cannot take place or a scenario cannot continue.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a run cannot take place.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The adapter's command cannot be split into words.
    #[error("the adapter's command cannot be parsed: {0}")]
    Command(String),
    /// The adapter's command cannot be started.
    #[error("the adapter cannot be started: {command}: {source}")]
    Adapter {
        /// The command.
        command: String,
        /// The error of the system.
        source: io::Error,
    },
    /// No scenario has this name.
    #[error("there is no scenario \"{0}\"")]
    NoScenario(String),
    /// The output folder was not created by a run.
    #[error(
        "{} is not empty and was not created by a run; choose a new or an empty folder",
        .0.display()
    )]
    NotOurs(PathBuf),
    /// Another run uses the output folder.
    #[error("{} is in use by another run; choose a different output folder", .0.display())]
    InUse(PathBuf),
    /// An output cannot be written or read back.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A system call failed that seldom fails.
    #[error("{action}: {source}")]
    System {
        /// The failed action.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The driver was asked to end by this signal.
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
}

impl DriveError {
    pub(super) fn output(path: &Path, source: io::Error) -> Self {
        Self::Output { path: path.to_owned(), source }
    }

    pub(super) fn system(action: &'static str, source: io::Error) -> Self {
        Self::System { action, source }
    }
}

/// The reason why a scenario cannot continue.
#[derive(Debug)]
pub(super) enum Ending {
    /// A member broke the protocol: the problem, and the end of its log.
    Broken { what: String, log: Option<String> },
    /// The implementation or this system lacks a feature.
    Unsupported(String),
    /// A member that had begun reports as unsupported what the implementation claims.
    Denied(String),
    /// The driver itself cannot continue.
    Failed(DriveError),
}

impl From<DriveError> for Ending {
    fn from(error: DriveError) -> Self {
        Self::Failed(error)
    }
}
