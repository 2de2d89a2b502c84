//! The rows of a group that has come together, and the end of a membership.

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::memory::{Row, RowWriter};

use super::files::OwnFiles;
use super::folder::is_live;
use super::futex::Bell;
use super::header::{HEADER_BYTES, Header, State};
use super::map::Map;

/// One member's memory, as this process sees it.
#[derive(Debug)]
pub(super) struct Member {
    /// Writable if it is the own one.
    pub(super) row: Map,
    pub(super) bell: Bell,
    /// The open row file, whose lock says whether the member lives. None for the own one.
    pub(super) life: Option<OwnedFd>,
}

impl Member {
    /// Where the row starts: behind the header.
    fn row_base(&self) -> NonNull<u8> {
        // SAFETY: `files` maps header and row in one piece.
        unsafe { self.row.base().add(HEADER_BYTES) }
    }

    fn row_bytes(&self) -> usize {
        self.row.bytes() - HEADER_BYTES
    }
}

/// A membership: shared by [`Mappings`] and the fabric over it.
#[derive(Debug)]
pub(super) struct Membership {
    own: Rank,
    ids: Vec<NodeId>,
    members: Vec<Member>,
    /// None once this member left.
    files: Mutex<Option<OwnFiles>>,
}

impl Membership {
    pub(super) fn own(&self) -> Rank {
        self.own
    }

    pub(super) fn ids(&self) -> &[NodeId] {
        &self.ids
    }

    /// The members, in rank order.
    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The own row's address and size: what a fabric is opened with must be this.
    pub(super) fn own_row(&self) -> (NonNull<u8>, usize) {
        let own = &self.members[self.own.index()];
        (own.row_base(), own.row_bytes())
    }

    /// Whether a peer is gone, and how. One system call while it lives; a failed one says nothing.
    pub(super) fn loss_of(&self, rank: Rank) -> Option<LossCause> {
        let member = &self.members[rank.index()];
        let header = Header::new(&member.row);
        let said = || match header.state() {
            State::Left => Some(LossCause::Left),
            State::Failed => Some(LossCause::Exited),
            State::Forming | State::Running => None,
        };
        let gone = member.life.as_ref().is_some_and(|life| matches!(is_live(life.as_fd()), Ok(false)));
        // What it said is looked at after the lock: it says it before it gives the lock back.
        said().or(gone.then_some(LossCause::Exited))
    }

    pub(super) fn leave(&self) {
        self.end(State::Left);
    }

    fn end(&self, state: State) {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(files) = files {
            Header::new(&self.members[self.own.index()].row).set_state(state);
            drop(files);
            for (index, member) in self.members.iter().enumerate() {
                if index != self.own.index() {
                    member.bell.ring();
                }
            }
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.end(State::Failed);
    }
}

/// The memory of a group that has come together: every member's row, this one's writable.
///
/// Rows are borrowed from it. When it and the [`SharedMemory`](super::SharedMemory) over it are dropped, the
/// memory is unmapped, and this member's files are removed. Peers that still map them keep them until they
/// unmap them in turn.
#[derive(Debug)]
pub struct Mappings {
    membership: Arc<Membership>,
}

impl Mappings {
    pub(super) fn new(own: Rank, ids: Vec<NodeId>, members: Vec<Member>, files: OwnFiles) -> Self {
        debug_assert_eq!(ids.len(), members.len());
        Self { membership: Arc::new(Membership { own, ids, members, files: Mutex::new(Some(files)) }) }
    }

    pub(super) fn membership(&self) -> &Arc<Membership> {
        &self.membership
    }

    /// This member's rank.
    #[must_use]
    pub fn own(&self) -> Rank {
        self.membership.own
    }

    /// The members' node ids, in rank order.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        &self.membership.ids
    }

    /// This member's own row, to be written.
    #[must_use]
    pub fn row(&self) -> RowWriter<'_> {
        let (base, bytes) = self.membership.own_row();
        // SAFETY: mapped writable, `bytes` long from `base`, while the membership lives, which `self` keeps
        // alive; it starts on a page. This row is written through core's types alone.
        unsafe { RowWriter::from_raw(base, bytes) }
    }

    /// All members' rows in rank order, to be read; the own one included.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<'_>> {
        let row = |member: &Member| {
            // SAFETY: mapped, `row_bytes` long from `row_base`, while the membership lives, which `self`
            // keeps alive; it starts on a page. Its owner is a member of the same program and layout
            // (version and digest were compared), and writes it through core's types.
            unsafe { Row::from_raw(member.row_base(), member.row_bytes()) }
        };
        self.membership.members.iter().map(row).collect()
    }

    /// A handle on the own doorbell, for application threads of this process.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.membership.members[self.membership.own.index()].bell.clone()
    }

    /// Leaves the group on purpose: says so, removes this member's files, and rings everybody. The rows stay
    /// mapped. Idempotent, and safe from any thread.
    ///
    /// A member that goes without this (an error, a panic, the end of its process) counts as failed: its
    /// peers' fabrics report `Exited` and not `Left`.
    pub fn leave(&self) {
        self.membership.leave();
    }
}
