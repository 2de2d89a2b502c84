//! What a node remembers of its membership, in a folder of its own that outlives its process.
//!
//! # Invariants
//! - A view stands on disk before the member does anything in it: the file is written beside its
//!   place and synced, then it gets its name, and the folder is synced. So a node that took part in
//!   a group knows it at its next start.
//! - In a group that logs, all initial nodes have a note on disk that the group is being formed,
//!   before any of them is a member. So if power is lost when one knows of the first view and the
//!   others do not, they are no new nodes, and count in its majority.
//! - The folder has one process: it holds the lock as long as it lives.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tramontane_core::ids::{NodeId, SubgroupId, ViewId};

use super::description::Description;
use super::promising::Promised;
use super::view::{View, WireView};
use crate::member::Stopped;

/// The file in the folder, and what it is written as.
const FILE: &str = "membership.json";
const WRITTEN: &str = "membership.new";
const LOCK: &str = "lock";

/// The form of the file.
const FORMAT: u32 = 1;

/// The newest view that a node was a member of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastMembership {
    format: u32,
    group: String,
    /// Of the description at that time.
    digest: u64,
    node: u32,
    /// The start of the node.
    incarnation: u64,
    pub(super) view: u64,
    pub(super) members: Vec<u32>,
    /// How the membership ended; not known if the process ended first.
    pub(super) end: Option<End>,
    /// The logged and other subgroups that have lost their state for good.
    #[serde(default)]
    pub(super) closed: Vec<u16>,
    /// The view after this one, if the node promised one: in one file, so that the two cannot
    /// disagree.
    #[serde(default)]
    pub(super) promise: Option<Promised>,
    /// The latest attempt of a total restart that the node took part in.
    #[serde(default)]
    pub(super) heard: (u32, u32),
    /// Views that were begun with less than a majority of the one before, because somebody said so.
    #[serde(default)]
    pub(super) with_less: Vec<u64>,
}

impl LastMembership {
    /// Of a node that was in no view yet: the note that the group is being formed.
    pub(super) fn empty(description: &Description, node: NodeId) -> Self {
        Self {
            format: FORMAT,
            group: description.name.clone(),
            digest: description.digest(),
            node: node.get(),
            incarnation: 0,
            view: 0,
            members: Vec::new(),
            end: None,
            closed: Vec::new(),
            promise: None,
            heard: (0, 0),
            with_less: Vec::new(),
        }
    }

    /// Whether it says no more than that the group was being formed.
    pub(super) const fn is_note(&self) -> bool {
        self.view == 0
    }

    pub(super) fn wire_view(&self) -> WireView {
        let members = self.members.iter().copied().map(NodeId).collect();
        let closed = self.closed.iter().copied().map(SubgroupId).collect();
        WireView::from(&View { id: ViewId(self.view), members, closed })
    }

    /// Knows of a view that is decided.
    pub(super) fn set_view(&mut self, view: &View) {
        self.view = view.id.0;
        self.members = view.members.iter().map(|node| node.get()).collect();
        self.closed = view.closed.iter().map(|subgroup| subgroup.0).collect();
        self.end = None;
    }
}

/// How a membership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum End {
    /// It left, and others went on.
    Left,
    /// It was the last member, and left: the group ended with it.
    Last,
    /// It was taken for dead, or had no majority any more.
    Halted,
    /// It was closed, or failed.
    Failed,
}

/// Why a folder is not a state of this node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// It cannot be read or written.
    #[error("cannot keep the node's state in {}: {source}; give a --state folder that this node may write", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another process has it.
    #[error("{} is the state of a node that runs; give each node a --state folder of its own", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// It was written by another node, or in another group.
    #[error("{} is the state of node {node} of group \"{group}\"; give each node a --state folder of its own", path.display())]
    Other {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        node: u32,
        /// The group that it is of.
        group: String,
    },
    /// It is not what a node wrote.
    #[error(
        "{} is damaged: {why}; if no member of the group runs any more, remove it and start all initial nodes with --new-group",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
}

/// A node's folder, its lock held.
#[derive(Debug)]
pub(super) struct StateFolder {
    path: PathBuf,
    folder: File,
    lock: File,
    last: Option<LastMembership>,
}

impl StateFolder {
    /// Opens the folder of a node of a group; makes it if it is not there.
    pub(super) fn open(path: &Path, group: &str, node: NodeId) -> Result<Self, StateError> {
        let failed = |source| StateError::Io { path: path.to_owned(), source };
        let folder = make(path).map_err(failed)?;
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(path.join(LOCK));
        let lock = lock.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StateError::InUse { path: path.to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let last = match std::fs::read(path.join(FILE)) {
            Ok(bytes) => Some(
                parse(&bytes).map_err(|why| StateError::Damaged { path: path.join(FILE), why })?,
            ),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if let Some(LastMembership { group: of, node: whose, .. }) = &last
            && (of != group || *whose != node.get())
        {
            return Err(StateError::Other {
                path: path.to_owned(),
                node: *whose,
                group: of.clone(),
            });
        }
        Ok(Self { path: path.to_owned(), folder, lock, last })
    }

    /// What was remembered; nothing at a node's first start.
    pub(super) const fn last_membership(&self) -> Option<&LastMembership> {
        self.last.as_ref()
    }

    /// Notes that the group is being formed.
    pub(super) fn note_forming(
        &mut self,
        description: &Description,
        node: NodeId,
    ) -> Result<(), StateError> {
        let note = LastMembership::empty(description, node);
        self.write(note).map_err(|source| StateError::Io { path: self.path.clone(), source })
    }

    /// Whether it holds no more than the note that the group was being formed.
    pub(super) fn is_note(&self) -> bool {
        self.last.as_ref().is_some_and(LastMembership::is_note)
    }

    pub(super) fn write(&mut self, last: LastMembership) -> io::Result<()> {
        let written = self.path.join(WRITTEN);
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&written)?;
        file.write_all(&serde_json::to_vec(&last)?)?;
        file.sync_all()?;
        std::fs::rename(&written, self.path.join(FILE))?;
        self.folder.sync_all()?;
        self.last = Some(last);
        Ok(())
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        // A process that another thread forks has a copy of the descriptor until it executes its
        // program. Closing alone would leave the lock with it.
        let _ = self.lock.unlock();
    }
}

/// Makes a folder that is not there, whose name stays too. Gives a handle of it.
fn make(path: &Path) -> io::Result<File> {
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

fn parse(bytes: &[u8]) -> Result<LastMembership, String> {
    let last: LastMembership = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if last.format == FORMAT { Ok(last) } else { Err(format!("it has format {}", last.format)) }
}

/// What a member writes down; nothing if it has no folder.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) folder: Option<StateFolder>,
    pub(super) group: String,
    pub(super) digest: u64,
    pub(super) node: NodeId,
    pub(super) incarnation: u64,
}

impl Record {
    /// Writes down a view, before this member does anything in it.
    pub(super) fn begins(&mut self, view: &View) -> Result<(), Stopped> {
        let before = self.folder.as_ref().and_then(StateFolder::last_membership);
        let last = LastMembership {
            format: FORMAT,
            group: self.group.clone(),
            digest: self.digest,
            node: self.node.get(),
            incarnation: self.incarnation,
            view: view.id.0,
            members: view.members.iter().map(|node| node.get()).collect(),
            end: None,
            closed: view.closed.iter().map(|subgroup| subgroup.0).collect(),
            promise: None,
            heard: before.map_or((0, 0), |last| last.heard),
            with_less: before.map_or_else(Vec::new, |last| last.with_less.clone()),
        };
        self.write(last)
    }

    /// Writes down a promise, before others see it.
    pub(super) fn promises(&mut self, promise: Promised) -> Result<(), Stopped> {
        let last = self.folder.as_ref().and_then(StateFolder::last_membership).cloned();
        let Some(last) = last else { return Ok(()) };
        self.write(LastMembership { promise: Some(promise), ..last })
    }

    fn write(&mut self, last: LastMembership) -> Result<(), Stopped> {
        let Some(folder) = &mut self.folder else { return Ok(()) };
        folder
            .write(last)
            .map_err(|error| Stopped::NoState(format!("{}: {error}", folder.path.display())))
    }

    /// Writes down how this membership ended, if that can be written.
    pub(super) fn ends(&mut self, why: &Stopped) {
        let Some(folder) = &mut self.folder else { return };
        let is_own =
            |last: &LastMembership| last.incarnation == self.incarnation && last.end.is_none();
        let Some(last) = folder.last.clone().filter(is_own) else { return };
        let end = match why {
            Stopped::Left if last.members.len() == 1 => End::Last,
            Stopped::Left => End::Left,
            Stopped::Halted { .. } => End::Halted,
            _ => End::Failed,
        };
        if let Err(error) = folder.write(LastMembership { end: Some(end), ..last }) {
            // To forget how it ended is to remember less, and nothing wrong.
            tracing::warn!(folder = %folder.path.display(), %error, "cannot write down how the membership ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::FIRST_VIEW;
    use super::*;

    fn record(path: &Path, incarnation: u64) -> Record {
        let folder = StateFolder::open(path, "g", NodeId(3)).expect("its own");
        Record { folder: Some(folder), group: "g".into(), digest: 7, node: NodeId(3), incarnation }
    }

    fn last_membership(record: &Record) -> Option<LastMembership> {
        record.folder.as_ref().expect("it has one").last_membership().cloned()
    }

    #[test]
    fn a_dropped_folder_is_free_though_a_copy_of_its_lock_is_open() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let folder = StateFolder::open(&path, "g", NodeId(3)).expect("its own");
        let copy = folder.lock.try_clone().expect("what a forked process has");
        StateFolder::open(&path, "g", NodeId(3)).expect_err("it is held");
        drop(folder);
        StateFolder::open(&path, "g", NodeId(3)).expect("it is free");
        drop(copy);
    }

    #[test]
    fn a_view_is_remembered_by_the_next_process_and_so_is_how_it_ended() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let view = |members: &[u32]| View {
            id: FIRST_VIEW,
            members: members.iter().copied().map(NodeId).collect(),
            closed: Vec::new(),
        };
        let mut first = record(&path, 1);
        assert_eq!(last_membership(&first), None);
        // An end before any view is none.
        first.ends(&Stopped::Closed);
        assert_eq!(last_membership(&first), None);
        first.begins(&view(&[3, 4])).expect("room");
        drop(first);
        let mut second = record(&path, 2);
        let remembered = last_membership(&second).expect("it was a member");
        assert_eq!(
            (remembered.view, remembered.members.as_slice(), remembered.end),
            (1, &[3, 4][..], None)
        );
        // A process that was in no view does not end the membership of the one before it.
        second.ends(&Stopped::Closed);
        assert_eq!(last_membership(&second).expect("as before").end, None);
        second.begins(&view(&[3, 4])).expect("room");
        second.ends(&Stopped::Left);
        assert_eq!(last_membership(&second).expect("it left").end, Some(End::Left));
        second.begins(&view(&[3])).expect("room");
        second.ends(&Stopped::Left);
        drop(second);
        assert_eq!(
            last_membership(&record(&path, 3)).expect("it was the last").end,
            Some(End::Last)
        );
    }

    #[test]
    fn a_folder_is_one_nodes_and_one_process_has_it() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let mut own = record(&path, 1);
        let view = View { id: FIRST_VIEW, members: vec![NodeId(3)], closed: Vec::new() };
        own.begins(&view).expect("room");
        let error = |group: &str, node| {
            StateFolder::open(&path, group, NodeId(node)).expect_err("not its own")
        };
        assert!(matches!(error("g", 3), StateError::InUse { .. }));
        drop(own);
        assert!(matches!(error("g", 4), StateError::Other { node: 3, .. }));
        assert!(matches!(error("h", 3), StateError::Other { .. }));
        std::fs::write(path.join(FILE), "{").expect("a file");
        assert!(matches!(error("g", 3), StateError::Damaged { .. }));
        let nowhere =
            StateFolder::open(Path::new("/nowhere/state"), "g", NodeId(3)).expect_err("no place");
        assert!(matches!(nowhere, StateError::Io { .. }));
    }

    /// A process that dies as it writes leaves the view before.
    #[test]
    fn half_a_file_is_not_read() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let view = View { id: FIRST_VIEW, members: vec![NodeId(3)], closed: Vec::new() };
        record(&path, 1).begins(&view).expect("room");
        std::fs::write(path.join(WRITTEN), "{\"fo").expect("a file");
        let mut next = record(&path, 2);
        assert_eq!(last_membership(&next).expect("it is whole").view, 1);
        next.begins(&View { id: FIRST_VIEW.next(), ..view }).expect("room");
        assert_eq!(last_membership(&next).expect("written over").view, 2);
    }
}
