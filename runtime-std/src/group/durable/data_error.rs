//! Errors of a node's data folder.

use std::path::PathBuf;

use tramontane_log::{OpenLogError, WriteError};

/// The reason why a node's logs cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A subgroup is logged, but there is no folder.
    #[error(
        "subgroup \"{0}\" is logged, but this node has no folder for the log; give the node its \
         own data folder"
    )]
    NoFolder(String),
    /// There is a folder, but nothing to log.
    #[error(
        "node {0} has a data folder but belongs to no logged subgroup; set logged = true in the \
         group file of all members, or start the node without a data folder"
    )]
    NothingLogged(u32),
    /// The subgroup's name is not valid for a folder.
    #[error(
        "subgroup \"{0}\" cannot be logged, because its name is not a valid folder name; give the \
         subgroup a different name"
    )]
    Name(String),
    /// The folder cannot be created.
    #[error(
        "cannot create {}: {source}; choose a data folder that this node may write to",
        path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error reported by the system.
        source: std::io::Error,
    },
    /// A log cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenLogError),
    /// A log cannot be written to.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The log belongs to another node.
    #[error(
        "{} contains the log of node {found}, not of node {wanted}; give each node its own data \
         folder",
        path.display()
    )]
    OtherNode {
        /// The folder.
        path: PathBuf,
        /// The owner of the log.
        found: String,
        /// The node that opened it.
        wanted: u32,
    },
    /// A log of an earlier group cannot be kept under another name.
    #[error("cannot rename {}: {source}; move it elsewhere", path.display())]
    SetAside {
        /// The folder.
        path: PathBuf,
        /// The error reported by the system.
        source: std::io::Error,
    },
}
