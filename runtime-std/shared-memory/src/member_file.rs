//! A member's file in the group's folder, with the lock that shows that the member is alive, and
//! the information that the member publishes about itself.
//!
//! The file is written and read, but never mapped, so truncating or removing it kills no process.
//! Its owner writes its identity before the file has its name, so others find it either complete or
//! not at all. Values that change later (the owner's state, its newest row) have their own words.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;

use tramontane_core::ids::NodeId;

use super::files::Names;
use super::folder::{Folder, is_live};

const MAGIC: u64 = u64::from_le_bytes(*b"tramemb\x01");
const FORMAT: u64 = 1;

/// The number of words in the file, each of 8 bytes.
const WORDS: usize = 9;
const STATE_AT: u64 = 7 * 8;
const ROW_AT: u64 = 8 * 8;

/// A member's state, which only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum State {
    /// The member has claimed its id in the group, and is running.
    Running = 1,
    /// The member has left deliberately.
    Left = 2,
    /// The member has ended without leaving, by an error or a panic.
    Failed = 3,
    /// The member is running, but by now has a different file, because this one was removed.
    MadeAgain = 4,
}

impl State {
    /// Returns whether the member has ended.
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Left | Self::Failed)
    }
}

/// A member's identity, which never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The digest of the group's description.
    pub(super) digest: u64,
    /// The member's node id.
    pub(super) node: NodeId,
    /// A random number, never zero, that only this incarnation of this member has.
    pub(super) incarnation: u64,
    /// Whether the member requests the barrier in its ringers' processes when it goes to sleep (see
    /// `futex`).
    pub(super) sleeper_barrier: bool,
}

/// The contents of a member's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) identity: Identity,
    /// Whether the file has the format that this program knows.
    pub(super) is_of_this_format: bool,
    /// The process id, for people only. No decision is based on it.
    pub(super) pid: u64,
    /// The member's state. An invalid value counts as failure.
    pub(super) state: State,
    /// The digest of the member's newest row, or zero if it has none.
    pub(super) row: u64,
}

/// A member's file, open.
#[derive(Debug)]
pub(super) struct MemberFile(File);

impl MemberFile {
    /// Fills a new file. Called by the owner before the file has its name.
    pub(super) fn write(file: OwnedFd, identity: &Identity) -> std::io::Result<Self> {
        let Identity { digest, node, incarnation, sleeper_barrier } = *identity;
        let (node, pid) = (u64::from(node.get()), u64::from(std::process::id()));
        let barrier = u64::from(sleeper_barrier);
        let state = State::Running as u64;
        let words = [MAGIC, FORMAT, digest, node, incarnation, barrier, pid, state, 0];
        let file = File::from(file);
        file.write_all_at(&words.map(u64::to_le_bytes).concat(), 0)?;
        Ok(Self(file))
    }

    /// Opens the file of a node for reading, if it exists and its owner is alive.
    pub(super) fn find(folder: &Folder, node: NodeId) -> rustix::io::Result<Option<Self>> {
        let file = folder.open_file(&Names::of(node).member)?.map(|file| Self(file.into()));
        match file {
            Some(file) if file.is_locked()? => Ok(Some(file)),
            _ => Ok(None),
        }
    }

    /// Wraps an open file of any owner.
    pub(super) fn of(file: OwnedFd) -> Self {
        Self(file.into())
    }

    /// Reads the file. Returns `None` if it is not a member's file, or is damaged.
    pub(super) fn read(&self) -> Option<Statement> {
        let mut bytes = [[0; 8]; WORDS];
        self.0.read_exact_at(bytes.as_flattened_mut(), 0).ok()?;
        let [magic, format, digest, node, incarnation, barrier, pid, state, row] =
            bytes.map(u64::from_le_bytes);
        let node = NodeId(u32::try_from(node).ok()?);
        let state = match state {
            1 => State::Running,
            2 => State::Left,
            4 => State::MadeAgain,
            _ => State::Failed,
        };
        let identity = Identity { digest, node, incarnation, sleeper_barrier: barrier == 1 };
        let is_of_this_format = format == FORMAT;
        (magic == MAGIC).then_some(Statement { identity, is_of_this_format, pid, state, row })
    }

    /// Returns whether the owner holds the file's lock, and is therefore alive.
    pub(super) fn is_locked(&self) -> rustix::io::Result<bool> {
        is_live(self.0.as_fd())
    }

    /// Publishes this member's state. Called by the owner.
    pub(super) fn set_state(&self, state: State) {
        self.set(STATE_AT, state as u64);
    }

    /// Publishes this member's newest row. Called by the owner.
    pub(super) fn set_row(&self, digest: u64) {
        self.set(ROW_AT, digest);
    }

    fn set(&self, offset: u64, value: u64) {
        // The words are allocated. If the file has been truncated on a full file system, its lock
        // still shows that this member is alive.
        if let Err(error) = self.0.write_all_at(&value.to_le_bytes(), offset) {
            tracing::warn!(%error, "cannot write to the member's file");
        }
    }

    /// Releases the lock. Otherwise, a child forked in the meantime would keep it, and this member
    /// would seem to be alive.
    pub(super) fn unlock(&self) {
        if let Err(error) = rustix::fs::flock(&self.0, rustix::fs::FlockOperation::Unlock) {
            tracing::warn!(%error, "cannot unlock the member's file");
        }
    }
}
