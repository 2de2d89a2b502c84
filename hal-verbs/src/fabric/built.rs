//! The results of workers, in order: first the objects that all connections share, then the objects
//! for each peer, then each peer's connections, once the peer's card has arrived.
//!
//! A peer is lost if an object for that peer cannot be created. All peers are lost if a shared
//! object cannot. Each loss is reported once, like any other.

use std::sync::Arc;

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::Rank;

use super::peer::Ends;
use super::{Life, Loss, LossReason, NearEnd, PeerStage, Verbs};
use crate::adapter::CompletionQueue;
use crate::commands::{Job, JobOutcome, Remains};
use crate::site::{JoinError, Prepared, ViewObjects};

impl Verbs {
    /// Handles the workers' results. If jobs run immediately, their follow-up jobs run in the same
    /// call.
    #[cold]
    pub(crate) fn take_built(&mut self) {
        while let Some(outcome) = self.commands.next_outcome() {
            match outcome {
                JobOutcome::Started(Ok(shared)) => self.started(shared),
                JobOutcome::Started(Err(error)) => self.unmade(None, error),
                JobOutcome::Prepared { peer, prepared: Ok(prepared) } => {
                    self.prepared(peer, prepared)
                }
                JobOutcome::Prepared { peer, prepared: Err(error) } => {
                    self.unmade(Some(peer), error)
                }
                JobOutcome::Connected { peer, ends: Ok(ends) } => self.connected(peer, ends),
                JobOutcome::Connected { peer, ends: Err(error) } => {
                    tracing::warn!(%peer, %error, "the device finds no path to a peer's address");
                    self.lose(peer, Loss::because(LossReason::NoWay));
                }
                JobOutcome::Ended => {}
                JobOutcome::Abandoned(Some(peer)) => {
                    self.lose(peer, Loss::of(LossCause::Unreachable))
                }
                JobOutcome::Abandoned(None) => self.lose_all(LossCause::Unreachable),
            }
        }
        if self.life == Life::Ending && self.commands.is_idle() {
            self.life = Life::Retired;
        }
        if !self.is_cost_told && self.commands.is_idle() && self.shared.is_some() {
            self.is_cost_told = true;
            tracing::info!(view = %self.view, cost = %self.cost(), "a view's memory over RDMA");
        }
    }

    /// Returns whether anything is being created, brought up or destroyed.
    pub(crate) const fn is_building(&self) -> bool {
        !self.commands.is_idle()
    }

    /// Returns the reason that an object could not be created, and only once.
    pub(crate) const fn take_failure(&mut self) -> Option<JoinError> {
        self.failure.take()
    }

    /// Records that objects cannot be created: those for a peer, or the shared ones.
    fn unmade(&mut self, peer: Option<Rank>, error: JoinError) {
        tracing::warn!(view = %self.view, %error, "a view's connections cannot be made");
        self.failure.get_or_insert(error);
        match peer {
            Some(peer) => self.lose(peer, Loss::of(LossCause::Unreachable)),
            None => self.lose_all(LossCause::Unreachable),
        }
    }

    fn started(&mut self, shared: ViewObjects) {
        let shared = Arc::new(shared);
        if self.has_ended() {
            let remains = Remains { shared: Some(shared), ..Remains::default() };
            return self.commands.hand_in(Job::End(remains));
        }
        for peer in (0..).map(Rank).take(self.peers.len()) {
            if self.rows_to[peer.index()].is_some() && self.is_awaited(peer) {
                self.peers[peer.index()].ends = Ends::Away;
                self.commands.hand_in(Job::Prepare {
                    builder: Arc::clone(&self.builder),
                    shared: Arc::clone(&shared),
                    peer,
                });
            }
        }
        if self.armed && shared.completions.notify().is_err() {
            self.armed = false;
        }
        self.completions = Some(shared.completions.clone());
        self.own_regions = shared.own_regions();
        self.shared = Some(shared);
    }

    fn prepared(&mut self, peer: Rank, prepared: Prepared) {
        let Prepared { ends, copy, relayed } = prepared;
        if self.has_ended() || !self.is_awaited(peer) {
            let copies = std::iter::once(copy).chain(relayed).collect();
            let remains = Remains { ends, copies, ..Remains::default() };
            return self.commands.hand_in(Job::End(remains));
        }
        self.copies[peer.index()] = Some(copy);
        self.relayed.extend(relayed);
        self.put(peer, ends);
        self.peers[peer.index()].ends = Ends::Made;
    }

    fn connected(&mut self, peer: Rank, ends: Vec<NearEnd>) {
        if self.has_ended() || !self.is_awaited(peer) {
            return self.commands.hand_in(Job::End(Remains { ends, ..Remains::default() }));
        }
        self.put(peer, ends);
        self.peers[peer.index()].ends = Ends::Up;
    }

    /// Stores this end of a peer's connections.
    fn put(&mut self, peer: Rank, ends: Vec<NearEnd>) {
        let of_peer = self.links.iter_mut().filter(|link| link.peer == peer);
        for (link, near) in of_peer.zip(ends) {
            link.put(near);
        }
    }

    /// Returns the completion queue, once it has been created.
    pub(crate) const fn completions(&self) -> Option<&CompletionQueue> {
        self.completions.as_ref()
    }

    /// Returns whether this end of a peer's connections has a card to show to the peer.
    pub(crate) fn has_card(&self, peer: Rank) -> bool {
        self.ends_of(peer) == Some(Ends::Made)
    }

    /// Returns whether this end of a peer's connections is up, so that the peer may be told.
    pub(crate) fn is_connected(&self, peer: Rank) -> bool {
        self.ends_of(peer) == Some(Ends::Up)
    }

    fn ends_of(&self, peer: Rank) -> Option<Ends> {
        self.peers.get(peer.index()).map(|peer| peer.ends)
    }

    /// Returns whether nothing is in flight and nothing can be posted.
    pub(crate) const fn has_ended(&self) -> bool {
        matches!(self.life, Life::Ending | Life::Retired)
    }

    /// Returns whether a peer's end is not yet known to be up.
    pub(super) fn is_awaited(&self, peer: Rank) -> bool {
        !self.has_ended()
            && matches!(self.rows_to.get(peer.index()), Some(Some(_)))
            && self.peers[peer.index()].stage == PeerStage::Awaited
    }
}
