//! What a node remembers of its membership, in a folder of its own that outlives its process.
//!
//! # Invariants
//! - A view is on disk before the member does anything in it (`state_file`). So a node that took
//!   part in a group knows it at its next start.
//! - Each log is named, with a lower bound of its end: a disk may come back without a part of it.
//!   The bound is raised as the log grows, by a thread of its own (`noting`).
//! - In a group that logs, all initial nodes have a note on disk that the group is being formed,
//!   before any of them is a member. So if power is lost when one knows of the first view and the
//!   others do not, they are no new nodes, and count in its majority.
//! - The folder has one process: it holds the lock as long as it lives.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tramontane_core::ids::{NodeId, SubgroupId, ViewId};
use tramontane_log::{Noted, Sequence};

use super::description::Description;
use super::noting::NotedFolder;
use super::promising::Promised;
use super::state_file::{COPIES, StateFile, StateFileError};
use super::view::{View, WireView};
use crate::member::Stopped;

const LOCK: &str = "lock";

/// The newest view that a node was a member of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastMembership {
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
    /// The node's logs.
    #[serde(default)]
    pub(super) logs: Vec<NotedLog>,
}

/// A log of a node, as it was at least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NotedLog {
    pub(super) subgroup: String,
    /// The number that tells it from any other log.
    pub(super) log: u64,
    /// How often it was opened to be written.
    pub(super) incarnation: u64,
    /// So many records were durable in it.
    pub(super) end: u64,
    /// So many were seen to be durable at a majority.
    pub(super) majority: u64,
    /// So many were seen to be durable at all members of the subgroup in the view.
    pub(super) everywhere: u64,
}

impl NotedLog {
    /// The same as the log itself has it.
    pub(super) const fn noted(&self) -> Noted {
        Noted { log: self.log, incarnation: self.incarnation, end: Sequence(self.end) }
    }
}

impl LastMembership {
    /// Of a node that was in no view yet: the note that the group is being formed.
    pub(super) fn empty(description: &Description, node: NodeId) -> Self {
        Self {
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
            logs: Vec::new(),
        }
    }

    /// What was noted of the log of a subgroup.
    pub(super) fn log(&self, subgroup: &str) -> Option<&NotedLog> {
        self.logs.iter().find(|log| log.subgroup == subgroup)
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
    #[error(
        "cannot keep the node's state in {}: {source}; free space on its disk, or give a --state folder that this node \
         may write, and start this node again",
        path.display()
    )]
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
    /// Neither copy is what a node wrote.
    #[error(
        "both copies of {} are damaged: {why}; move them away, and start the node again: it keeps its log, and joins its group as a new node",
        path.display()
    )]
    Damaged {
        /// The file, as its first copy is called.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// A newer version wrote it.
    #[error("{} was written by a newer version, in format {found}; start the node with that version", path.display())]
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

/// What the node of a folder noted of its log of a subgroup, whether it runs or not; nothing if it
/// noted nothing.
///
/// # Errors
/// [`StateError`].
pub fn noted_log(folder: &Path, subgroup: &str) -> Result<Option<Noted>, StateError> {
    let logs = noted_logs(folder)?;
    Ok(logs.iter().find(|log| log.subgroup == subgroup).map(NotedLog::noted))
}

/// The same of all its logs.
pub(super) fn noted_logs(folder: &Path) -> Result<Vec<NotedLog>, StateError> {
    let read = StateFile::read::<LastMembership>(folder);
    let (_, last, _) = read.map_err(|error| StateError::of(folder, error))?;
    Ok(last.map_or_else(Vec::new, |last| last.logs))
}

/// A node's folder, its lock held.
#[derive(Debug)]
pub(super) struct StateFolder {
    path: PathBuf,
    file: StateFile,
    lock: File,
    last: Option<LastMembership>,
    /// The copy that was damaged, and is written again.
    pub(super) repaired: Option<PathBuf>,
}

impl StateFolder {
    /// Opens the folder of a node of a group; makes it if it is not there.
    pub(super) fn open(path: &Path, group: &str, node: NodeId) -> Result<Self, StateError> {
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
        self.keep(LastMembership::empty(description, node))
    }

    /// Writes down a view before this node is a member.
    pub(super) fn keep(&mut self, last: LastMembership) -> Result<(), StateError> {
        self.write(last).map_err(|source| StateError::Io { path: self.path.clone(), source })
    }

    /// Whether it holds no more than the note that the group was being formed.
    pub(super) fn is_note(&self) -> bool {
        self.last.as_ref().is_some_and(LastMembership::is_note)
    }

    fn write(&mut self, last: LastMembership) -> io::Result<()> {
        self.file.write(&self.path, &last)?;
        self.last = Some(last);
        Ok(())
    }

    /// Raises what is noted of the logs that the node writes in that view.
    pub(super) fn raise(&mut self, view: u64, logs: &[NotedLog]) -> io::Result<()> {
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

/// What a member writes down; nothing if it has no folder.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) folder: Option<NotedFolder>,
    pub(super) group: String,
    pub(super) digest: u64,
    pub(super) node: NodeId,
    pub(super) incarnation: u64,
}

impl Record {
    /// Writes down a view, before this member does anything in it.
    pub(super) fn begins(&mut self, view: &View, logs: Vec<NotedLog>) -> Result<(), Stopped> {
        let before = self.last_membership();
        let last = LastMembership {
            group: self.group.clone(),
            digest: self.digest,
            node: self.node.get(),
            incarnation: self.incarnation,
            view: view.id.0,
            members: view.members.iter().map(|node| node.get()).collect(),
            end: None,
            closed: view.closed.iter().map(|subgroup| subgroup.0).collect(),
            promise: None,
            heard: before.as_ref().map_or((0, 0), |last| last.heard),
            with_less: before.map_or_else(Vec::new, |last| last.with_less),
            logs,
        };
        self.write(last)
    }

    /// Writes down a promise, before others see it.
    pub(super) fn promises(&mut self, promise: Promised) -> Result<(), Stopped> {
        let Some(last) = self.last_membership() else { return Ok(()) };
        self.write(LastMembership { promise: Some(promise), ..last })
    }

    fn write(&self, last: LastMembership) -> Result<(), Stopped> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut folder = folder.lock();
        folder
            .write(last)
            .map_err(|error| Stopped::NoState(format!("{}: {error}", folder.path.display())))
    }

    fn last_membership(&self) -> Option<LastMembership> {
        self.folder.as_ref()?.lock().last.clone()
    }

    /// Whether what is noted of the logs may be raised now.
    pub(super) fn may_raise(&self) -> bool {
        self.folder.as_ref().is_some_and(NotedFolder::is_free)
    }

    /// Has what is noted of the logs raised, beside all else.
    pub(super) fn raises(&self, view: ViewId, logs: Vec<NotedLog>) {
        if let Some(folder) = &self.folder {
            folder.raises(view.0, logs);
        }
    }

    /// Writes down how this membership ended, if that can be written.
    pub(super) fn ends(&mut self, why: &Stopped, view: ViewId, logs: &[NotedLog]) {
        let Some(folder) = &self.folder else { return };
        let mut folder = folder.lock();
        if let Err(error) = folder.raise(view.0, logs) {
            tracing::warn!(folder = %folder.path.display(), %error, "cannot note where the logs end");
        }
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
        let folder = NotedFolder::new(folder, false).expect("no thread");
        Record { folder: Some(folder), group: "g".into(), digest: 7, node: NodeId(3), incarnation }
    }

    fn last_membership(record: &Record) -> Option<LastMembership> {
        record.last_membership()
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
        first.ends(&Stopped::Closed, FIRST_VIEW, &[]);
        assert_eq!(last_membership(&first), None);
        first.begins(&view(&[3, 4]), Vec::new()).expect("room");
        drop(first);
        let mut second = record(&path, 2);
        let remembered = last_membership(&second).expect("it was a member");
        assert_eq!(
            (remembered.view, remembered.members.as_slice(), remembered.end),
            (1, &[3, 4][..], None)
        );
        // A process that was in no view does not end the membership of the one before it.
        second.ends(&Stopped::Closed, FIRST_VIEW, &[]);
        assert_eq!(last_membership(&second).expect("as before").end, None);
        second.begins(&view(&[3, 4]), Vec::new()).expect("room");
        second.ends(&Stopped::Left, FIRST_VIEW, &[]);
        assert_eq!(last_membership(&second).expect("it left").end, Some(End::Left));
        second.begins(&view(&[3]), Vec::new()).expect("room");
        second.ends(&Stopped::Left, FIRST_VIEW, &[]);
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
        own.begins(&view, Vec::new()).expect("room");
        let error = |group: &str, node| {
            StateFolder::open(&path, group, NodeId(node)).expect_err("not its own")
        };
        assert!(matches!(error("g", 3), StateError::InUse { .. }));
        drop(own);
        assert!(matches!(error("g", 4), StateError::Other { node: 3, .. }));
        assert!(matches!(error("h", 3), StateError::Other { .. }));
        for copy in COPIES {
            std::fs::write(path.join(copy), "{").expect("a file");
        }
        assert!(matches!(error("g", 3), StateError::Damaged { .. }));
        let nowhere =
            StateFolder::open(Path::new("/nowhere/state"), "g", NodeId(3)).expect_err("no place");
        assert!(matches!(nowhere, StateError::Io { .. }));
    }

    /// A folder of before had one copy, without a checksum.
    #[test]
    fn the_first_format_is_read_and_written_in_the_present_one() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let old = "{\"format\":1,\"group\":\"g\",\"digest\":7,\"node\":3,\"incarnation\":1,\"view\":5,\
            \"members\":[3],\"end\":null,\"closed\":[],\"promise\":null,\"heard\":[0,0],\"with_less\":[2]}";
        std::fs::create_dir(&path).expect("room");
        std::fs::write(path.join(COPIES[0]), old).expect("a file");
        let found = last_membership(&record(&path, 2)).expect("it was a member");
        assert_eq!((found.view, found.with_less.as_slice(), found.logs.len()), (5, &[2][..], 0));
        std::fs::remove_file(path.join(COPIES[0])).expect("there are two");
        assert_eq!(last_membership(&record(&path, 2)), Some(found));
    }

    #[test]
    fn notes_of_logs_only_rise_and_only_in_their_view() {
        let place = tempfile::tempdir().expect("a folder");
        let mut record = record(&place.path().join("state"), 1);
        let log = |log, end| NotedLog {
            subgroup: "s".into(),
            log,
            incarnation: 1,
            end,
            majority: end,
            everywhere: 0,
        };
        let view = View { id: FIRST_VIEW, members: vec![NodeId(3)], closed: Vec::new() };
        record.begins(&view, vec![log(7, 5)]).expect("room");
        for (view, raised, noted) in [
            (FIRST_VIEW, log(7, 9), 9),
            (FIRST_VIEW, log(7, 8), 9),
            (FIRST_VIEW, log(8, 20), 9),
            (FIRST_VIEW.next(), log(7, 20), 9),
        ] {
            record.folder.as_ref().expect("one").lock().raise(view.0, &[raised]).expect("room");
            assert_eq!(last_membership(&record).expect("a view").logs, [log(7, noted)]);
        }
    }
}
