//! Why there is no run, or a scenario does not go on.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no run at all.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The adapter's command cannot be taken apart.
    #[error("the adapter's command cannot be understood: {0}")]
    Command(String),
    /// The adapter's command cannot be started.
    #[error("the adapter cannot be started: {command}: {source}")]
    Adapter {
        /// The command.
        command: String,
        /// What the system says.
        source: io::Error,
    },
    /// No scenario has this name.
    #[error("no scenario is called \"{0}\"")]
    NoScenario(String),
    /// The output folder was not made by a run.
    #[error("{} is not empty, and no run made it", .0.display())]
    NotOurs(PathBuf),
    /// Another run uses the output folder.
    #[error("{} is in use by another run", .0.display())]
    InUse(PathBuf),
    /// Something cannot be written, or read back.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// What.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system refused something that it seldom does.
    #[error("{action}: {source}")]
    System {
        /// What.
        action: &'static str,
        /// What it says.
        source: io::Error,
    },
    /// The driver was asked to end, by this signal.
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

/// Why a scenario cannot go on.
#[derive(Debug)]
pub(super) enum Ending {
    /// A member broke the protocol: how, and the end of its log.
    Broken { what: String, log: Option<String> },
    /// The implementation, or this system, lacks something.
    Unsupported(String),
    /// The driver itself cannot go on.
    Failed(DriveError),
}

impl From<DriveError> for Ending {
    fn from(error: DriveError) -> Self {
        Self::Failed(error)
    }
}
