//! A member's file in the group's folder: the lock that says that it lives, and what it says of
//! itself.
//!
//! The file is written and read, and never mapped: whoever shortens or removes it kills nobody. Its
//! owner writes who it is before the file has its name, so others find it whole or not at all. What
//! changes later (how far the owner has come, its newest row) has words of its own.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;

use tramontane_core::ids::NodeId;

use super::files::Names;
use super::folder::{Folder, is_live};

const MAGIC: u64 = u64::from_le_bytes(*b"tramemb\x01");
const FORMAT: u64 = 1;

/// The words of the file, 8 bytes each.
const WORDS: usize = 9;
const STATE_AT: u64 = 7 * 8;
const ROW_AT: u64 = 8 * 8;

/// How far a member has come. It only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum State {
    /// It has its place in the group.
    Running = 1,
    /// It went away on purpose.
    Left = 2,
    /// It went away without saying that it leaves: an error, a panic.
    Failed = 3,
    /// It runs, and has another file by now: somebody removed this one.
    MadeAgain = 4,
}

impl State {
    /// Whether the member has gone.
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Left | Self::Failed)
    }
}

/// Who a member is. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The digest of the group's description.
    pub(super) digest: u64,
    /// Its node id.
    pub(super) node: NodeId,
    /// A random number, never zero: this start of this member and no other.
    pub(super) incarnation: u64,
    /// Whether it puts the barrier into its ringers' processes when it goes to sleep (see
    /// `futex`).
    pub(super) sleeper_barrier: bool,
}

/// What a member's file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) identity: Identity,
    /// Whether it is of the form that this program knows.
    pub(super) is_of_this_format: bool,
    /// Its process id. For people: nothing is decided by it.
    pub(super) pid: u64,
    /// How far it has come. What cannot be is taken as failure.
    pub(super) state: State,
    /// The digest of the newest row that it has; zero if it has none.
    pub(super) row: u64,
}

/// A member's file, open.
#[derive(Debug)]
pub(super) struct MemberFile(File);

impl MemberFile {
    /// Fills a new file. For the owner, before the file has its name.
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

    /// Opens the file of a node, to read it, if it is there and its owner lives.
    pub(super) fn find(folder: &Folder, node: NodeId) -> rustix::io::Result<Option<Self>> {
        let file = folder.open_file(&Names::of(node).member)?.map(|file| Self(file.into()));
        match file {
            Some(file) if file.is_locked()? => Ok(Some(file)),
            _ => Ok(None),
        }
    }

    /// An open file, whosever it is.
    pub(super) fn of(file: OwnedFd) -> Self {
        Self(file.into())
    }

    /// What the file says. None if it is no member's, or somebody has damaged it.
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

    /// Whether its owner holds its lock: it lives.
    pub(super) fn is_locked(&self) -> rustix::io::Result<bool> {
        is_live(self.0.as_fd())
    }

    /// Says how far this member has come. For the owner.
    pub(super) fn set_state(&self, state: State) {
        self.set(STATE_AT, state as u64);
    }

    /// Says which row is this member's newest. For the owner.
    pub(super) fn set_row(&self, digest: u64) {
        self.set(ROW_AT, digest);
    }

    fn set(&self, offset: u64, value: u64) {
        // The words are allocated; if somebody shortened the file on a file system that is full,
        // its lock still says that this member lives.
        if let Err(error) = self.0.write_all_at(&value.to_le_bytes(), offset) {
            tracing::warn!(%error, "cannot write to the member's file");
        }
    }

    /// Gives the lock back. Without this, a child that was forked meanwhile would keep it, and this
    /// member would seem to live.
    pub(super) fn unlock(&self) {
        if let Err(error) = rustix::fs::flock(&self.0, rustix::fs::FlockOperation::Unlock) {
            tracing::warn!(%error, "cannot unlock the member's file");
        }
    }
}
