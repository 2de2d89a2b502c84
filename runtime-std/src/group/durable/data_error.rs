//! Errors of a node's data folder.

use std::path::PathBuf;

use tramontane_log::{OpenError, WriteError};

/// Why a node's logs cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A subgroup is logged, and there is no folder.
    #[error(
        "subgroup \"{0}\" is logged, and this node has no folder for its log; give it one of its own"
    )]
    NoFolder(String),
    /// There is a folder, and nothing to log.
    #[error(
        "there is a data folder, and node {0} belongs to no logged subgroup; set logged = true in \
         the group file at all members, or start the node without the folder (--data)"
    )]
    NothingLogged(u32),
    /// A subgroup's name cannot name a folder.
    #[error(
        "the log of subgroup \"{0}\" cannot have a folder of that name; give the subgroup another \
         name"
    )]
    Name(String),
    /// The folder cannot be made.
    #[error("cannot make {}: {source}; give a --data folder that this node may write", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A log cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A log cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The log belongs to another node.
    #[error("{} has the log of node {found}, and not of node {wanted}; give each node a --data folder of its own", path.display())]
    OtherNode {
        /// The folder.
        path: PathBuf,
        /// The owner of the log.
        found: String,
        /// The node that opened it.
        wanted: u32,
    },
    /// A log of an earlier group cannot be kept under another name.
    #[error("cannot keep {} under another name: {source}; move it away", path.display())]
    SetAside {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}
