//! The first page of a row file: which process wrote it, for which layout, and how far its owner
//! has come.
//!
//! A base file without a row is this page alone; its digest is then that of the group's
//! description. In the file of a view's row the state is that of the row: over, once its owner
//! ended the view.
//!
//! The owner fills it and publishes the magic number last; until then the file counts as not there.
//! What changes later (state, run) has a cache line to itself, and that line never changes while
//! messages flow.

use std::sync::atomic::{AtomicU64, Ordering};

use super::map::Map;

/// Where the row starts in its file.
pub(super) const HEADER_BYTES: usize = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"tramrow\x01");
const FORMAT: u64 = 1;

/// How far the owner of a row has come. It only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum State {
    /// It waits for its peers.
    Forming = 1,
    /// All were there; messages may flow.
    Running = 2,
    /// It went away on purpose.
    Left = 3,
    /// It went away without saying that it leaves: an error, a panic.
    Failed = 4,
}

impl State {
    /// Whether the owner is done with its row.
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Left | Self::Failed)
    }
}

/// What the owner writes once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    /// The digest of the layout, or of the group's description.
    pub(super) digest: u64,
    /// The owner's node id.
    pub(super) node: u64,
    /// A random number, never zero: this start of this member and no other.
    pub(super) incarnation: u64,
    /// Whether a sleeping owner puts the barrier into its ringers' processes (see `futex`).
    pub(super) sleeper_barrier: bool,
}

/// The header of a mapped row file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'m>(&'m Map);

impl<'m> Header<'m> {
    /// The header of a file that is mapped from its start, for [`HEADER_BYTES`] or more.
    pub(super) const fn new(map: &'m Map) -> Self {
        Self(map)
    }

    /// Fills a fresh header. For the owner.
    pub(super) fn write(self, identity: &Identity) {
        for (cell, value) in [
            (self.format(), FORMAT),
            (self.digest_cell(), identity.digest),
            (self.node_cell(), identity.node),
            (self.incarnation_cell(), identity.incarnation),
            (self.barrier(), u64::from(identity.sleeper_barrier)),
            (self.pid_cell(), u64::from(std::process::id())),
            (self.state_cell(), State::Forming as u64),
        ] {
            cell.store(value, Ordering::Relaxed);
        }
        self.0.cell(0).store(MAGIC, Ordering::Release);
    }

    /// Whether the owner has filled it.
    pub(super) fn is_written(self) -> bool {
        self.0.cell(0).load(Ordering::Acquire) == MAGIC
    }

    /// Whether it is of the form that this program knows.
    pub(super) fn is_of_this_format(self) -> bool {
        self.format().load(Ordering::Relaxed) == FORMAT
    }

    /// The digest of the owner's layout.
    pub(super) fn digest(self) -> u64 {
        self.digest_cell().load(Ordering::Relaxed)
    }

    /// The owner's node id.
    pub(super) fn node(self) -> u64 {
        self.node_cell().load(Ordering::Relaxed)
    }

    /// The owner's incarnation.
    pub(super) fn incarnation(self) -> u64 {
        self.incarnation_cell().load(Ordering::Relaxed)
    }

    /// Whether a sleeping owner puts the barrier into its ringers' processes.
    pub(super) fn sleeper_barrier(self) -> bool {
        self.barrier().load(Ordering::Relaxed) == 1
    }

    /// The owner's process id. For people: nothing is decided by it.
    pub(super) fn pid(self) -> u64 {
        self.pid_cell().load(Ordering::Relaxed)
    }

    /// How far the owner has come. What cannot be is taken as failure.
    pub(super) fn state(self) -> State {
        match self.state_cell().load(Ordering::Acquire) {
            1 => State::Forming,
            2 => State::Running,
            3 => State::Left,
            _ => State::Failed,
        }
    }

    /// Publishes how far this member has come. For the owner.
    pub(super) fn set_state(self, state: State) {
        self.state_cell().store(state as u64, Ordering::Release);
    }

    /// The run that the owner is ready for, or is in; zero for none.
    pub(super) fn run(self) -> u64 {
        self.0.cell(72).load(Ordering::Acquire)
    }

    /// Publishes the run that this member is ready for. For the owner.
    pub(super) fn set_run(self, run: u64) {
        self.0.cell(72).store(run, Ordering::Release);
    }

    fn format(self) -> &'m AtomicU64 {
        self.0.cell(8)
    }

    fn digest_cell(self) -> &'m AtomicU64 {
        self.0.cell(16)
    }

    fn node_cell(self) -> &'m AtomicU64 {
        self.0.cell(24)
    }

    fn incarnation_cell(self) -> &'m AtomicU64 {
        self.0.cell(32)
    }

    fn barrier(self) -> &'m AtomicU64 {
        self.0.cell(40)
    }

    fn pid_cell(self) -> &'m AtomicU64 {
        self.0.cell(48)
    }

    fn state_cell(self) -> &'m AtomicU64 {
        self.0.cell(64)
    }
}
