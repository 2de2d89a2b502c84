//! Shutdowns: a peer that is lost or cut, a view that is retired, a member that leaves.

use std::time::{Duration, Instant};

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::{Rank, ViewId};

use super::peer::Ends;
use super::{Life, Link, Loss, LossReason, NearEnd, PeerStage, Purpose, Verbs};
use crate::adapter::QueuePairState;
use crate::commands::{Job, Remains};
use crate::status::WorkStatus;

/// Maximum time for which a leaving member waits for its posts.
const LEAVE_MAX: Duration = Duration::from_millis(500);

impl Verbs {
    /// Handles a failed request on a connection. The peer is lost, unless the connection is a
    /// region's.
    pub(super) fn fail(&mut self, index: usize, status: WorkStatus, vendor_error: u32) {
        let link = &self.links[index];
        if let Purpose::Region(_) = link.purpose {
            return self.fail_region(index, status);
        }
        let rank = link.peer;
        if status == WorkStatus::Flushed {
            // The first failure may be reported after the flushes that it caused.
            self.peers[rank.index()].flushed.get_or_insert((index, vendor_error));
            self.has_flushed = true;
            return;
        }
        self.lose_by(index, status, vendor_error);
    }

    /// Called after all completions have been processed, so that no later one can explain the
    /// flushed requests.
    #[cold]
    pub(super) fn end_flushed(&mut self) {
        self.has_flushed = false;
        for rank in 0..self.peers.len() {
            if let Some((index, vendor_error)) = self.peers[rank].flushed.take()
                && index < self.links.len()
            {
                self.lose_by(index, WorkStatus::Flushed, vendor_error);
            }
        }
    }

    fn lose_by(&mut self, index: usize, status: WorkStatus, vendor_error: u32) {
        let link = &self.links[index];
        // The queue pair is certainly in this state now, so querying the device, which costs a
        // command, is not necessary.
        let queue_pair = Some(QueuePairState::Error.name());
        let rank = link.peer;
        // This is also the cause of a refusal, because a killed peer refuses before it falls
        // silent. A member that mistook the refusal for a cut would halt, and so would all
        // survivors.
        let cause = LossCause::Unreachable;
        let is_sealed = link.purpose == Purpose::Row;
        let reason = self.probe_failed(index, status);
        let loss = Loss { cause, status: Some(status), vendor_error, queue_pair, reason };
        self.lose_sealed(rank, loss, is_sealed);
    }

    /// Handles a list that the device refused. How much of the list was sent is unknown.
    #[cold]
    pub(super) fn fail_post(&mut self, index: usize) {
        self.lose(self.links[index].peer, Loss::of(LossCause::Unreachable));
    }

    /// Counts a peer as lost, once, and shuts down its connections. Its writes may still land in
    /// the copy of its row until that copy is sealed.
    pub(super) fn lose(&mut self, rank: Rank, loss: Loss) {
        self.lose_sealed(rank, loss, false);
    }

    /// Counts a peer as lost. If `is_sealed`, nothing more lands in the copy of the peer's row.
    fn lose_sealed(&mut self, rank: Rank, loss: Loss, is_sealed: bool) {
        let peer = &mut self.peers[rank.index()];
        let is_news = peer.stage.is_wanted() && matches!(self.life, Life::Fresh | Life::Open(_));
        if !peer.stage.is_heard() {
            return;
        }
        if peer.stage == PeerStage::Departed {
            // There is nothing new to report: requests in flight to the peer may fail, and the peer
            // may disappear.
            return self.end_links(rank, true);
        }
        peer.stage = PeerStage::Lost;
        peer.loss = Some(loss);
        if is_news {
            peer.loss_untold = true;
            // Before `open`, nothing can be reported. `open` counts the losses found so far.
            self.untold += usize::from(self.life != Life::Fresh);
        }
        self.end_links(rank, is_sealed);
    }

    /// Adds the reason that a peer was lost, if it became known only after the loss.
    pub(crate) fn explain(&mut self, rank: Rank, reason: LossReason) {
        if let Some(loss) = self.peers.get_mut(rank.index()).and_then(|peer| peer.loss.as_mut()) {
            loss.reason.get_or_insert(reason);
        }
    }

    /// Handles the failure of the device or of the completion queue. In both cases all queue pairs
    /// are in error, and nothing lands.
    pub(crate) fn lose_all(&mut self, cause: LossCause) {
        for rank in (0..).map(Rank).take(self.peers.len()) {
            if self.rows_to[rank.index()].is_some() {
                self.lose_sealed(rank, Loss::of(cause), true);
            }
        }
    }

    /// Records that the peer has ended the view. Nothing more is sent to it; requests in flight may
    /// fail silently.
    pub(super) fn departed(&mut self, rank: Rank) {
        let peer = &mut self.peers[rank.index()];
        if peer.stage.is_wanted() {
            peer.stage = PeerStage::Departed;
        }
    }

    /// Cuts a peer: none of its writes lands in the copy of its row after this returns. Returns
    /// whether this took a device command.
    pub(crate) fn cut_peer(&mut self, view: ViewId, rank: Rank) -> bool {
        self.part_from(view, rank);
        self.life == Life::Open(view) && self.seal(rank)
    }

    /// Cuts a peer, but writes in flight may still land until the copy is sealed.
    pub(crate) fn part_from(&mut self, view: ViewId, rank: Rank) {
        if self.life != Life::Open(view) || !matches!(self.rows_to.get(rank.index()), Some(Some(_)))
        {
            return;
        }
        let peer = &mut self.peers[rank.index()];
        if matches!(peer.stage, PeerStage::Cut | PeerStage::Lost) {
            peer.stage = PeerStage::Cut;
            self.untold -= usize::from(std::mem::take(&mut peer.loss_untold));
            return;
        }
        // A member that has ended the view writes nothing more.
        let is_sealed = peer.stage == PeerStage::Departed;
        peer.stage = PeerStage::Cut;
        self.untold -= usize::from(std::mem::take(&mut peer.ready_untold));
        self.untold -= usize::from(std::mem::take(&mut peer.loss_untold));
        self.end_links(rank, is_sealed);
    }

    /// Makes workers shut down all connections to a peer, except the row's connection if the row's
    /// copy is not sealed.
    fn end_links(&mut self, rank: Rank, is_sealed: bool) {
        let mut remains = Remains::default();
        for index in 0..self.regions.len() {
            if self.regions[index].peer == rank {
                self.give_up_region_lists(index);
            }
        }
        for link in self.links.iter_mut().filter(|link| link.peer == rank) {
            self.waiting -= link.queue.waiting();
            link.queue.forget();
            let is_up = link.near().is_some_and(NearEnd::is_up);
            if link.purpose == Purpose::Row && is_up && !is_sealed {
                self.unsealed += 1;
            } else {
                remains.ends.extend(link.take());
            }
        }
        self.take_keys(rank);
        remains.exchanges.extend(self.blocks.forget(rank));
        self.peers[rank.index()].ends = Ends::Away;
        self.commands.hand_in(Job::End(remains));
        if self.commands.is_at_once() {
            self.seal(rank);
        }
    }

    /// Ensures that nothing more from a lost peer lands in the copy of its row. Destroys the queue
    /// pair immediately, which is safer than a reset, because on some devices a reset revokes
    /// nothing. Returns whether this took a device command.
    fn seal(&mut self, rank: Rank) -> bool {
        let Some(Some(row)) = self.rows_to.get(rank.index()).copied() else { return false };
        if !matches!(self.peers[rank.index()].stage, PeerStage::Lost | PeerStage::Cut) {
            return false;
        }
        let near = self.links[row].take();
        self.unsealed -= usize::from(near.is_some());
        near.is_some()
    }

    /// Seals the copy of one lost peer, and returns `false` if there is none. Sealing takes a
    /// command, so a step does it at most once.
    #[inline]
    pub(crate) fn seal_one(&mut self) -> bool {
        self.unsealed > 0 && (0..).map(Rank).take(self.peers.len()).any(|rank| self.seal(rank))
    }

    pub(super) fn retire_view(&mut self, view: ViewId) -> bool {
        match self.life {
            Life::Open(open) if open == view => self.start_to_retire(view),
            Life::Retiring(open) if open == view => {}
            // A view that was never opened has nothing in flight.
            Life::Fresh if view == self.view => return self.end_view(),
            Life::Ending if view == self.view => {
                self.take_built();
                return self.life == Life::Retired;
            }
            Life::Fresh | Life::Open(_) | Life::Retiring(_) | Life::Ending | Life::Retired => {
                return true;
            }
        }
        self.collect();
        for index in 0..self.links.len() {
            if self.links[index].purpose == Purpose::Row {
                self.send_notices(index);
            }
        }
        self.flush();
        let owes = |rank: &Option<usize>, peer: &super::Peer| {
            rank.is_some() && peer.stage == PeerStage::Live && !peer.doorbell.due().is_empty()
        };
        let is_due = self.rows_to.iter().zip(&self.peers).any(|(rank, peer)| owes(rank, peer));
        // A departed peer receives nothing more, and does not have to answer.
        let waits = |link: &super::Link| {
            link.queue.in_flight() > 0 && self.peers[link.peer.index()].stage == PeerStage::Live
        };
        if is_due || self.links.iter().any(waits) {
            return false;
        }
        self.end_view()
    }

    fn start_to_retire(&mut self, view: ViewId) {
        self.life = Life::Retiring(view);
        for peer in &mut self.peers {
            if peer.stage == PeerStage::Live {
                peer.doorbell.retire();
            }
            (peer.ready_untold, peer.loss_untold) = (false, false);
        }
        self.untold = 0;
    }

    /// Makes workers destroy connections and registrations. Returns `true` once that is done, so
    /// that the memory may be released.
    fn end_view(&mut self) -> bool {
        self.life = Life::Ending;
        self.commands.make_nothing_more();
        let remains = Remains {
            ends: self.links.iter_mut().filter_map(Link::take).collect(),
            exchanges: self.blocks.clear(),
            copies: self.copies.drain(..).flatten().chain(self.relayed.drain(..)).collect(),
            completions: self.completions.take(),
            shared: self.shared.take(),
        };
        self.links.clear();
        self.rows_to.fill(None);
        self.regions.clear();
        self.own_regions.clear();
        (self.waiting, self.unsealed) = (0, 0);
        self.commands.hand_in(Job::End(remains));
        self.take_built();
        self.life == Life::Retired
    }

    /// Waits up to half a second for posted writes to arrive, before a member leaves on purpose.
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
}

/// Workers also destroy the objects of a view that was never retired.
impl Drop for Verbs {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.end_view();
        }
    }
}
