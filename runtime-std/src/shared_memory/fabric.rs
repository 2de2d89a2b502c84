//! The `Fabric` over shared rows: nothing travels.
//!
//! The release store in the own row is the write, and it is visible before `post` is called; so a post has
//! only to check its ranges and to wake its target if that sleeps. A list is complete when it is posted.
//! The bytes of a guard cannot be held back as they were at the call, and need not be: a cell only grows,
//! and its own release store stands behind the content that it speaks for.
//!
//! No call here allocates after [`SharedMemory::new`]. The system calls are: one in a post or a wake whose
//! target sleeps, those of [`SharedMemory::sleep`] and `arm`, and those of [`SharedMemory::check_peers`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, LossCause, Promises, Region, Token, ViewMemory, WRITES_MAX, Write,
};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::layout::{CACHE_LINE, ROW_MAX};

use super::futex::Bell;
use super::mappings::{Mappings, Membership};

/// Completions that may wait for a poll; beyond it, a post with a token is refused for now.
const COMPLETIONS_MAX: usize = 1024;

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Somebody rang.
    Rung,
    /// Nobody did: the time is up. Or it is not, and a signal came, or the late half of an earlier ring,
    /// whose kernel call was overtaken by this member's next sleep.
    Unrung,
}

/// What the fabric knows of one member.
#[derive(Debug)]
struct Peer {
    bell: Bell,
    /// No traffic any more: cut by the core, or lost.
    is_cut: bool,
    loss: Option<LossCause>,
    ready_untold: bool,
    loss_untold: bool,
}

/// One view's life; memory is never used for a second one (VIE-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Fresh,
    Open(ViewId),
    Retired,
}

/// The shared-memory fabric of one member, over the [`Mappings`] that it joined with. One a membership.
#[derive(Debug)]
pub struct SharedMemory {
    membership: Arc<Membership>,
    peers: Vec<Peer>,
    row_bytes: usize,
    stage: Stage,
    completed: VecDeque<Token>,
    /// Readiness and losses that `poll` has not told yet.
    untold: usize,
}

impl SharedMemory {
    /// The fabric of the member that owns these mappings.
    #[must_use]
    pub fn new(mappings: &Mappings) -> Self {
        let membership = Arc::clone(mappings.membership());
        let peer =
            |bell: Bell| Peer { bell, is_cut: false, loss: None, ready_untold: false, loss_untold: false };
        let peers = membership.members().iter().map(|member| peer(member.bell.clone())).collect();
        let (_, row_bytes) = membership.own_row();
        Self {
            membership,
            peers,
            row_bytes,
            stage: Stage::Fresh,
            completed: VecDeque::with_capacity(COMPLETIONS_MAX),
            untold: 0,
        }
    }

    /// A handle on the own doorbell, for application threads of this process.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.own_bell().clone()
    }

    /// Sleeps until somebody rings, at most `timeout`. Between a successful `arm`, followed by one more look
    /// for work, and `disarm`. May end early.
    pub fn sleep(&mut self, timeout: Duration) -> Wake {
        if self.own_bell().doorbell().sleep(timeout) { Wake::Rung } else { Wake::Unrung }
    }

    /// Looks which peers are gone; `poll` then reports them. True if one is newly lost.
    ///
    /// A system call a peer, below a microsecond: for a timer, some ten times a second, and for
    /// [`Event::Woken`]: who leaves, or fails while its process goes on, rings. Who is killed does not.
    pub fn check_peers(&mut self) -> bool {
        let own = self.membership.own();
        let mut found = false;
        for (rank, peer) in (0..).map(Rank).zip(&mut self.peers) {
            if rank == own || peer.loss.is_some() || self.stage == Stage::Retired {
                continue;
            }
            if let Some(cause) = self.membership.loss_of(rank) {
                peer.loss = Some(cause);
                peer.loss_untold = true;
                self.untold += 1;
                found = true;
            }
        }
        found
    }

    /// Leaves the group on purpose: see [`Mappings::leave`].
    pub fn leave(&self) {
        self.membership.leave();
    }

    fn own_bell(&self) -> &Bell {
        &self.peers[self.membership.own().index()].bell
    }

    /// A peer that may be posted to.
    #[inline]
    fn target(&self, view: ViewId, to: Rank) -> Result<&Peer, ErrorKind> {
        if self.stage != Stage::Open(view) {
            return Err(ErrorKind::Other);
        }
        if to == self.membership.own() {
            return Err(ErrorKind::OutOfRange);
        }
        let peer = self.peers.get(to.index()).ok_or(ErrorKind::OutOfRange)?;
        if peer.is_cut || peer.loss.is_some() { Err(ErrorKind::PeerLost) } else { Ok(peer) }
    }

    /// What is news about the peers: rarely anything.
    #[cold]
    fn tell(&mut self) -> Option<Event> {
        let Stage::Open(view) = self.stage else { return None };
        for (rank, peer) in (0..).map(Rank).zip(&mut self.peers) {
            if std::mem::take(&mut peer.ready_untold) {
                self.untold -= 1;
                return Some(Event::Ready { view, peer: rank });
            }
            if std::mem::take(&mut peer.loss_untold) {
                self.untold -= 1;
                // `check_peers` sets both at once.
                let cause = peer.loss.unwrap_or(LossCause::Exited);
                return Some(Event::PeerLost { view, peer: rank, cause });
            }
        }
        None
    }
}

/// Whether a write stays at its place in the row: nothing else can be done without moving bytes.
#[inline]
fn is_carried(write: &Write, row_bytes: usize) -> bool {
    let fits = write.source.offset.checked_add(write.length).is_some_and(|end| end <= row_bytes);
    fits && write.source == write.target && write.source.region == Region::ROW
}

impl Fabric for SharedMemory {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            promises: Promises::all(),
            writes_max: WRITES_MAX,
            write_bytes_max: ROW_MAX,
            guard_bytes_max: CACHE_LINE,
        }
    }

    /// # Errors
    /// [`ErrorKind::Other`] if a view was opened before: each has memory of its own; or if this is not the
    /// memory that was joined with.
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        let (base, bytes) = self.membership.own_row();
        let row = memory.row.reader();
        let is_ours = (row.base(), row.bytes()) == (base, bytes)
            && memory.own == self.membership.own()
            && memory.members == self.membership.ids();
        if self.stage != Stage::Fresh || !is_ours {
            return Err(ErrorKind::Other);
        }
        self.stage = Stage::Open(view);
        for (rank, peer) in (0..).map(Rank).zip(&mut self.peers) {
            if rank != memory.own {
                // The barrier is behind us: all rows are mapped.
                peer.ready_untold = true;
                self.untold += 1;
            }
        }
        Ok(())
    }

    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.target(view, peer).is_ok()
    }

    fn cut(&mut self, view: ViewId, peer: Rank) {
        if self.stage == Stage::Open(view)
            && let Some(peer) = self.peers.get_mut(peer.index())
        {
            peer.is_cut = true;
        }
    }

    fn retire(&mut self, view: ViewId) -> bool {
        if self.stage == Stage::Open(view) {
            self.stage = Stage::Retired;
            for peer in &mut self.peers {
                (peer.ready_untold, peer.loss_untold) = (false, false);
            }
            self.untold = 0;
        }
        // Nothing is ever in flight: peers read, and what they read stays mapped at their side.
        true
    }

    #[inline]
    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let peer = self.target(view, to)?;
        if writes.len() > WRITES_MAX || !writes.iter().all(|write| is_carried(write, self.row_bytes)) {
            return Err(ErrorKind::OutOfRange);
        }
        if token.is_some() && self.completed.len() == COMPLETIONS_MAX {
            return Err(ErrorKind::QueueFull);
        }
        // One fence a post at most, and none where the sleeper pays: which stores belong to which post is
        // not known here, so one fence for the posts of a whole step could not be placed safely.
        peer.bell.ring_if_asleep();
        if let Some(token) = token {
            self.completed.push_back(token);
        }
        Ok(())
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        if let Some(token) = self.completed.pop_front() {
            return Some(Event::Completed(token));
        }
        if self.untold > 0 {
            return self.tell();
        }
        self.own_bell().doorbell().take().then_some(Event::Woken)
    }

    fn wake(&mut self, view: ViewId, to: Rank) {
        if let Ok(peer) = self.target(view, to) {
            peer.bell.ring();
        }
    }

    fn arm(&mut self) -> bool {
        self.completed.is_empty() && self.untold == 0 && self.own_bell().doorbell().arm()
    }

    fn disarm(&mut self) {
        self.own_bell().doorbell().disarm();
    }

    fn observe_barrier(&self) {}
}
