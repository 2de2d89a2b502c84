//! The reasons why a replica's folder cannot be used.

use std::path::PathBuf;

use tramontane_log::{OpenLogError, ReadError, WriteError};

/// The reason why a replica cannot use its data folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The overlay is durable, but there is no folder.
    #[error(
        "the overlay is durable, but replica {0} has no data folder; give it a folder (--data DIR)"
    )]
    NoFolder(String),
    /// There is a folder, but the overlay is not durable.
    #[error(
        "the overlay is not durable, so replica {0} would save nothing in its data folder; set \
         durable = true in the overlay file of all processes, or start it without the folder"
    )]
    NotDurable(String),
    /// The folder cannot be created or replaced.
    #[error("cannot create {}: {source}; choose a data folder that this replica may write to", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error reported by the system.
        source: std::io::Error,
    },
    /// The folder was written by a replica of an overlay with other groups or limits.
    #[error(
        "{} was written with other groups or limits in the overlay file; use that file, or another \
         data folder",
        path.display()
    )]
    OtherOverlay {
        /// The folder.
        path: PathBuf,
    },
    /// The log in the folder cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenLogError),
    /// The log in the folder cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log in the folder cannot be written to.
    #[error(transparent)]
    Write(#[from] WriteError),
}
