//! Ends: a peer that is lost or cut, a view that is retired, a member that leaves.

use std::time::{Duration, Instant};

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::{Rank, ViewId};

use super::{Life, Purpose, Stage, Verbs};
use crate::status::WorkStatus;

/// How long a member that leaves waits for what it posted.
const LEAVE_MAX: Duration = Duration::from_millis(500);

/// Why a peer counts as lost, with all that the device said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What the core is told.
    pub cause: LossCause,
    /// How the first request ended that failed; none if the loss was found otherwise.
    pub status: Option<WorkStatus>,
    /// What the vendor says beside it.
    pub vendor_error: u32,
    /// The state in which the queue pair was then.
    pub queue_pair: Option<&'static str>,
}

impl Loss {
    pub(super) const fn of(cause: LossCause) -> Self {
        Self { cause, status: None, vendor_error: 0, queue_pair: None }
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.cause)?;
        if let Some(status) = self.status {
            write!(out, ": {status}")?;
        }
        if let Some(state) = self.queue_pair {
            write!(out, ", the queue pair in state '{state}', vendor error {}", self.vendor_error)?;
        }
        Ok(())
    }
}

impl Verbs {
    /// A request on a connection failed: its peer is lost, or, where the connection is a region's,
    /// not.
    pub(super) fn fail(&mut self, index: usize, status: WorkStatus, vendor_error: u32) {
        let link = &self.links[index];
        if let Purpose::Region(_) = link.purpose {
            return self.fail_region(index, status);
        }
        let queue_pair = Some(link.state_name());
        let (rank, cause) = (link.peer, status.cause());
        self.lose(rank, Loss { cause, status: Some(status), vendor_error, queue_pair });
    }

    /// The device refused a list: what of it went out is not known.
    #[cold]
    pub(super) fn fail_post(&mut self, index: usize) {
        let link = &self.links[index];
        let (rank, queue_pair) = (link.peer, Some(link.state_name()));
        let loss =
            Loss { cause: LossCause::Unreachable, status: None, vendor_error: 0, queue_pair };
        self.lose(rank, loss);
    }

    /// Counts a peer as lost, once, and ends its connections: nothing more lands here, and nothing
    /// is read.
    pub(super) fn lose(&mut self, rank: Rank, loss: Loss) {
        let peer = &mut self.peers[rank.index()];
        let is_news = peer.stage.is_wanted() && matches!(self.life, Life::Fresh | Life::Open(_));
        if !peer.stage.is_heard() {
            return;
        }
        if peer.stage == Stage::Departed {
            // No news: what was under way to it may fail, and it may go for good.
            return self.end_links(rank);
        }
        tracing::debug!(%rank, %loss, "a peer is lost");
        peer.stage = Stage::Lost;
        peer.loss = Some(loss);
        if is_news {
            peer.loss_untold = true;
            // Before `open` nobody can be told; it counts what there is then.
            self.untold += usize::from(self.life != Life::Fresh);
        }
        self.end_links(rank);
    }

    pub(super) fn lose_all(&mut self, cause: LossCause) {
        for rank in (0..).map(Rank).take(self.peers.len()) {
            if self.rows_to[rank.index()].is_some() {
                self.lose(rank, Loss::of(cause));
            }
        }
    }

    /// The peer ended the view at its side. Nothing more goes there; what is under way may fail
    /// unnoticed.
    pub(super) fn departed(&mut self, rank: Rank) {
        let peer = &mut self.peers[rank.index()];
        if peer.stage.is_wanted() {
            peer.stage = Stage::Departed;
        }
    }

    pub(super) fn cut_peer(&mut self, view: ViewId, rank: Rank) {
        if self.life != Life::Open(view) || !matches!(self.rows_to.get(rank.index()), Some(Some(_)))
        {
            return;
        }
        let peer = &mut self.peers[rank.index()];
        if peer.stage == Stage::Cut {
            return;
        }
        peer.stage = Stage::Cut;
        self.untold -= usize::from(std::mem::take(&mut peer.ready_untold));
        self.untold -= usize::from(std::mem::take(&mut peer.loss_untold));
        self.end_links(rank);
    }

    /// Resets all connections to a peer. A reset that fails means that the device is gone, and with
    /// it the traffic.
    fn end_links(&mut self, rank: Rank) {
        for link in self.links.iter_mut().filter(|link| link.peer == rank) {
            self.waiting -= link.queue.waiting();
            if let Err(error) = link.reset() {
                tracing::debug!(%rank, %error, "a queue pair cannot be reset");
            }
        }
        self.blocks.forget(rank);
    }

    pub(super) fn retire_view(&mut self, view: ViewId) -> bool {
        match self.life {
            Life::Open(open) if open == view => self.start_to_retire(view),
            Life::Retiring(open) if open == view => {}
            Life::Fresh if view == self.view => {
                self.end_view();
                return true;
            }
            // Of a view that nobody opened nothing is in flight.
            Life::Fresh | Life::Open(_) | Life::Retiring(_) | Life::Retired => return true,
        }
        self.collect();
        for index in 0..self.links.len() {
            if self.links[index].purpose == Purpose::Row {
                self.send_notices(index);
            }
        }
        self.flush();
        let owes = |rank: &Option<usize>, peer: &super::Peer| {
            rank.is_some() && peer.stage == Stage::Live && !peer.doorbell.due().is_empty()
        };
        let is_due = self.rows_to.iter().zip(&self.peers).any(|(rank, peer)| owes(rank, peer));
        // A peer that departed takes nothing more, and need not answer.
        let waits = |link: &super::Link| {
            link.queue.in_flight() > 0 && self.peers[link.peer.index()].stage == Stage::Live
        };
        if is_due || self.links.iter().any(waits) {
            return false;
        }
        self.end_view();
        true
    }

    fn start_to_retire(&mut self, view: ViewId) {
        self.life = Life::Retiring(view);
        for peer in &mut self.peers {
            if peer.stage == Stage::Live {
                peer.doorbell.retire();
            }
            (peer.ready_untold, peer.loss_untold) = (false, false);
        }
        self.untold = 0;
    }

    /// Ends connections and registrations: the memory may go.
    fn end_view(&mut self) {
        self.life = Life::Retired;
        for index in 0..self.links.len() {
            // Ended below; a reset first, so that nothing lands between this and the end of the
            // memory.
            let _ = self.links[index].reset();
        }
        self.links.clear();
        self.rows_to.fill(None);
        self.regions.clear();
        self.blocks.clear();
        self.registered.clear();
        self.waiting = 0;
    }

    /// Waits, at most half a second, until what was posted has arrived: before a member leaves on
    /// purpose.
    pub fn leave(&mut self) {
        let until = Instant::now() + LEAVE_MAX;
        self.flush();
        self.collect();
        while (self.in_flight() > 0 || self.owes_blocks()) && Instant::now() < until {
            self.flush();
            self.wait_for_completions(until.saturating_duration_since(Instant::now()));
            self.collect();
        }
    }

    /// Looks whether the device is still there: a system call, for a timer and not for a loop. What
    /// it finds comes out of `poll`. True if something is new.
    pub fn check_device(&mut self) -> bool {
        if self.life == Life::Retired || !self.context.has_failed() {
            return false;
        }
        let before = self.untold;
        self.lose_all(LossCause::Unreachable);
        self.untold != before
    }
}
