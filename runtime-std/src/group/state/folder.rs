//! The folder in which a node keeps its state.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use tramontane_core::ids::NodeId;
use tramontane_log::Noted;

use super::last_membership::LastMembership;
use super::noted_log::NotedLog;
use super::state_file::{COPIES, StateFile, StateFileError};
use crate::group::description::terms::Description;

pub(crate) const LOCK: &str = "lock";

/// The reason why a folder is not a valid state of this node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The folder cannot be read or written.
    #[error(
        "cannot use the node's state in {}: {source}; use a state folder that this user may read and \
         write, on a disk with free space",
        path.display()
    )]
    Io {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process has the folder open.
    #[error(
        "{} is the state folder of a running node; give each node its own state folder",
        path.display()
    )]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The folder belongs to another node or to another group.
    #[error(
        "{} contains the state of node {node} of group \"{group}\"; give each node its own state \
         folder",
        path.display()
    )]
    Other {
        /// The folder.
        path: PathBuf,
        /// The node that the folder belongs to.
        node: u32,
        /// The group that the folder belongs to.
        group: String,
    },
    /// Neither copy is one that was written by a node.
    #[error(
        "both copies of {} are damaged: {why}; move them elsewhere and start the node again: it \
         keeps its log, and joins its group as a new node",
        path.display()
    )]
    Damaged {
        /// The path of the first copy.
        path: PathBuf,
        /// The damage.
        why: String,
    },
    /// The folder was written by a newer version.
    #[error(
        "{} was written by a newer version of the program, in format {found}; start the node with \
         that version",
        path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

impl StateError {
    fn of(path: &Path, error: StateFileError) -> Self {
        let path = path.to_owned();
        match error {
            StateFileError::Io(source) => Self::Io { path, source },
            StateFileError::Newer(found) => Self::NewerFormat { path: path.join(COPIES[0]), found },
            StateFileError::Damaged(why) => Self::Damaged { path: path.join(COPIES[0]), why },
        }
    }
}

/// Returns the note in a node's folder about its log of a subgroup, whether or not the node is
/// running. Returns `None` if there is no such note.
///
/// # Errors
/// [`StateError`].
pub fn noted_log(folder: &Path, subgroup: &str) -> Result<Option<Noted>, StateError> {
    let logs = noted_logs(folder)?;
    Ok(logs.iter().find(|log| log.subgroup == subgroup).map(NotedLog::noted))
}

/// Returns the notes about all logs of the node.
pub(crate) fn noted_logs(folder: &Path) -> Result<Vec<NotedLog>, StateError> {
    let read = StateFile::read::<LastMembership>(folder);
    let (_, last, _) = read.map_err(|error| StateError::of(folder, error))?;
    Ok(last.map_or_else(Vec::new, |last| last.logs))
}

/// A node's folder, whose lock is held.
#[derive(Debug)]
pub(crate) struct StateFolder {
    pub(super) path: PathBuf,
    file: StateFile,
    pub(super) lock: File,
    pub(super) last: Option<LastMembership>,
    /// The path of the damaged copy that has been rewritten, if there was one.
    pub(crate) repaired: Option<PathBuf>,
}

impl StateFolder {
    /// Opens the folder of a node in a group, and creates it if it does not exist.
    pub(crate) fn open(path: &Path, group: &str, node: NodeId) -> Result<Self, StateError> {
        let failed = |source| StateError::Io { path: path.to_owned(), source };
        make(path).map_err(failed)?;
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(path.join(LOCK));
        let lock = lock.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StateError::InUse { path: path.to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let opened = StateFile::open::<LastMembership>(path);
        let (file, last, repaired) = opened.map_err(|error| StateError::of(path, error))?;
        if let Some(LastMembership { group: of, node: whose, .. }) = &last
            && (of != group || *whose != node.get())
        {
            return Err(StateError::Other {
                path: path.to_owned(),
                node: *whose,
                group: of.clone(),
            });
        }
        let repaired = repaired.map(|name| path.join(name));
        Ok(Self { path: path.to_owned(), file, lock, last, repaired })
    }

    /// Returns the recorded membership; `None` for a new node.
    pub(crate) const fn last_membership(&self) -> Option<&LastMembership> {
        self.last.as_ref()
    }

    /// Notes that the group is being formed.
    pub(crate) fn note_forming(
        &mut self,
        description: &Description,
        node: NodeId,
    ) -> Result<(), StateError> {
        self.keep(LastMembership::empty(description, node))
    }

    /// Records a view before this node becomes a member.
    pub(crate) fn keep(&mut self, last: LastMembership) -> Result<(), StateError> {
        self.write(last).map_err(|source| StateError::Io { path: self.path.clone(), source })
    }

    /// Returns whether the folder contains only the note that the group was being formed.
    pub(crate) fn is_note(&self) -> bool {
        self.last.as_ref().is_some_and(LastMembership::is_note)
    }

    pub(super) fn write(&mut self, last: LastMembership) -> io::Result<()> {
        self.file.write(&self.path, &last)?;
        self.last = Some(last);
        Ok(())
    }

    /// Updates the notes about the logs that the node writes in the given view.
    pub(crate) fn raise(&mut self, view: u64, logs: &[NotedLog]) -> io::Result<()> {
        let last = self.last.clone().filter(|last| last.view == view);
        let Some(mut last) = last else { return Ok(()) };
        let known = |log: &NotedLog| {
            logs.iter().find(|raised| (&raised.subgroup, raised.log) == (&log.subgroup, log.log))
        };
        for log in &mut last.logs {
            if let Some(raised) = known(log) {
                log.end = log.end.max(raised.end);
                log.majority = log.majority.max(raised.majority);
                log.everywhere = log.everywhere.max(raised.everywhere);
            }
        }
        if self.last.as_ref() != Some(&last) {
            self.file.write(&self.path, &last)?;
            self.last = Some(last);
        }
        Ok(())
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        // A process forked by another thread has a copy of the descriptor until it executes its
        // program. Merely closing the descriptor would leave the lock with that process.
        let _ = self.lock.unlock();
    }
}

/// Creates a folder if it does not exist, and makes its name durable. Returns a handle to it.
pub(crate) fn make(path: &Path) -> io::Result<File> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    File::open(path)
}
