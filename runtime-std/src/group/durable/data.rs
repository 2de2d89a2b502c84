//! The data folder of a node: a log for each logged subgroup that it belongs to, in a folder of the
//! subgroup's name.
//!
//! # Invariants
//! - A log is one node's, of one subgroup of one group, and one process has it.
//! - What a log holds that the group does not go on with is never thrown away: it is kept under
//!   another name, and named.

use std::path::{Path, PathBuf};

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_log::{Batch, Identity, Log, OpenError, Options, SystemFolder, WriteError};

use super::LogTakenOver;
use crate::group::description::{Description, SubgroupDescription};

/// Where a node with a data folder remembers its membership, if nothing else is said.
pub(in crate::group) const VIEW_FOLDER: &str = "view";

/// The named value of a log that says whose it is.
const NODE: &str = "node";

/// Why a node's logs cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A subgroup is logged, and there is no folder.
    #[error(
        "subgroup \"{0}\" is logged, and this node has no folder for its log; give it one of its \
         own (--data DIR), or take logged = true out of the group file at all members"
    )]
    NoFolder(String),
    /// There is a folder, and nothing to log.
    #[error(
        "there is a data folder, and node {0} belongs to no logged subgroup; set logged = true in \
         the group file at all members, or start the node without the folder (--data)"
    )]
    NothingLogged(u32),
    /// A subgroup's name is no name of a folder.
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
        /// What the system says.
        source: std::io::Error,
    },
    /// A log cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A log cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It is another node's.
    #[error("{} has the log of node {found}, and not of node {wanted}; give each node a --data folder of its own", path.display())]
    OtherNode {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Whose it was taken for.
        wanted: u32,
    },
    /// A log of an earlier group cannot be kept under another name.
    #[error("cannot keep {} under another name: {source}; move it away", path.display())]
    SetAside {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// Something of a log that the group did not go on with, and where it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// The subgroup.
    pub subgroup: SubgroupId,
    /// How many records.
    pub records: u64,
    /// The file or folder that has them.
    pub kept: PathBuf,
}

/// The data folder of a node, its logs open.
#[derive(Debug, Default)]
pub(in crate::group) struct DataFolder {
    path: PathBuf,
    group: String,
    node: NodeId,
    pub(in crate::group) logs: Vec<LogTakenOver>,
    pub(in crate::group) set_aside: Vec<SetAside>,
}

impl DataFolder {
    /// Opens the logs of a node's subgroups, each made if it is not there.
    pub(in crate::group) fn open(
        description: &Description,
        node: NodeId,
        path: Option<&Path>,
    ) -> Result<Self, DataError> {
        let subgroups = (0..).map(SubgroupId).zip(&description.subgroups);
        let is_ours = |of: &SubgroupDescription| of.logged && of.members().contains(&node.get());
        let mut ours = subgroups.filter(|(_, of)| is_ours(of)).peekable();
        let path = match (path, ours.peek()) {
            (None, None) => return Ok(Self::default()),
            (None, Some((_, of))) => return Err(DataError::NoFolder(of.name.clone())),
            (Some(_), None) => return Err(DataError::NothingLogged(node.get())),
            (Some(path), Some(_)) => path.to_owned(),
        };
        let group = description.name.clone();
        let mut folder = Self { path, group, node, ..Self::default() };
        for (subgroup, of) in ours {
            let log = folder.open_log(subgroup, &of.name)?;
            folder.logs.push(log);
        }
        Ok(folder)
    }

    fn open_log(&self, subgroup: SubgroupId, name: &str) -> Result<LogTakenOver, DataError> {
        let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']);
        if !is_name || name == VIEW_FOLDER {
            return Err(DataError::Name(name.to_owned()));
        }
        let path = self.path.join(name);
        let layer = SystemFolder::create(&path)
            .map_err(|source| DataError::Folder { path: path.clone(), source })?;
        let identity = Identity { group: self.group.clone(), subgroup: name.to_owned() };
        let (mut log, recovery) = Log::open(layer, &identity, Options::default())?;
        let node = self.node.get().to_string();
        match log.value(NODE) {
            None => log.set_values(&[(NODE, Some(node.as_bytes()))])?,
            Some(found) if found == node.as_bytes() => {}
            Some(found) => {
                let found = String::from_utf8_lossy(found).into_owned();
                return Err(DataError::OtherNode { path, found, wanted: self.node.get() });
            }
        }
        Ok(LogTakenOver { subgroup, path, log, recovery, batch: Batch::new() })
    }

    /// The group starts anew, or this node joins it as new: logs of before are kept under other
    /// names.
    pub(in crate::group) fn begin_anew(&mut self) -> Result<(), DataError> {
        for taken_over in std::mem::take(&mut self.logs) {
            if taken_over.is_untouched() {
                self.logs.push(taken_over);
                continue;
            }
            let LogTakenOver { subgroup, path, log, .. } = taken_over;
            let records = log.end().0.saturating_sub(log.first().0);
            let name = log.identity().subgroup.clone();
            drop(log);
            let kept = set_aside(&path)
                .map_err(|source| DataError::SetAside { path: path.clone(), source })?;
            tracing::info!(%subgroup, records, kept = %kept.display(), "a log of before is set aside");
            self.set_aside.push(SetAside { subgroup, records, kept });
            let log = self.open_log(subgroup, &name)?;
            self.logs.push(log);
        }
        Ok(())
    }

    /// The log of a subgroup, if it is logged.
    pub(in crate::group) fn log(&mut self, subgroup: SubgroupId) -> Option<&mut LogTakenOver> {
        self.logs.iter_mut().find(|log| log.subgroup == subgroup)
    }
}

/// Gives a folder the first name of `path.1`, `path.2` and so on that is free, for good.
fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let is_free = |kept: &PathBuf| std::fs::symlink_metadata(kept).is_err();
    let kept = (1..u32::MAX).map(numbered).find(is_free).unwrap_or_default();
    std::fs::rename(path, &kept)?;
    if let Some(above) = path.parent() {
        std::fs::File::open(above)?.sync_all()?;
    }
    Ok(kept)
}
