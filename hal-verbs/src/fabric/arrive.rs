//! Peers that come one by one, where views change: each end is brought up by what the other told,
//! over whatever way they talk, and nothing is posted before both are.
//!
//! ```text
//! one end                                  the other
//! card_for ------------- card -----------> connect: it can be written to
//! connect  <------------ card ------------ card_for
//!          --------- "connected" --------> admit: it tries a first write
//! admit    <-------- "connected" ---------
//!          ------ the first write -------> (its device)
//! ready    <---------- answer ------------
//! ```
//!
//! A peer may have been told before this end is, and write already: what comes from a peer that is
//! awaited is taken.

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::Rank;

use super::{Life, Loss, Stage, Verbs};
use crate::ffi::Operation;
use crate::protocol::Counters;

impl Verbs {
    /// What a peer is to be told of this member's end of their connections.
    #[must_use]
    pub fn card_for(&self, peer: Rank) -> Vec<u8> {
        self.handshake.card_for(&self.links, peer).encode()
    }

    /// Brings this end of the connections with a peer up, by its card. From then on the peer may
    /// write. False if that cannot be: then the peer is lost.
    pub fn connect(&mut self, peer: Rank, card: &[u8]) -> bool {
        if !self.is_awaited(peer) {
            return false;
        }
        let Err(refused) = self.handshake.connect(&mut self.links, peer, card) else { return true };
        tracing::warn!(%peer, ?refused, "a peer's card leads nowhere");
        self.lose(peer, Loss::of(LossCause::Unreachable));
        false
    }

    /// A peer's end is up, and so is this one. It is ready once a first write to it, of nothing, is
    /// answered: an address that looks right and leads nowhere is told as a loss before anything
    /// is posted (HAL-3).
    pub fn admit(&mut self, peer: Rank) {
        if !self.is_awaited(peer) {
            return;
        }
        let Some(row) = self.rows_to[peer.index()] else { return };
        // Not one of those that are counted.
        let mut uncounted = Counters::default();
        let Self { links, buffers, .. } = self;
        let first = Operation::Write;
        if links[row].post_one(buffers, first, None, None, true, &mut uncounted).is_err() {
            return self.fail_post(row);
        }
        self.peers[peer.index()].stage = Stage::Tried;
    }

    /// The first write to a peer is answered: it may be written to.
    pub(super) fn answered(&mut self, peer: Rank) {
        let is_armed = self.armed;
        let answering = &mut self.peers[peer.index()];
        answering.stage = Stage::Live;
        if matches!(self.life, Life::Open(_)) {
            answering.ready_untold = true;
            self.untold += 1;
        }
        if is_armed {
            answering.doorbell.arm();
        }
        // What it asked before is answered now.
        if let Some(row) = self.rows_to[peer.index()] {
            self.send_notices(row);
        }
        self.post_blocks(peer);
    }

    /// A peer is gone, as another way than this one shows. That it cut this member off is worth
    /// knowing afterwards too: it need not be dead, then.
    pub fn lose_peer(&mut self, peer: Rank, cause: LossCause) {
        if self.life == Life::Retired || !matches!(self.rows_to.get(peer.index()), Some(Some(_))) {
            return;
        }
        // What it posted before it went was acknowledged, so it is here; its notices are worth
        // hearing.
        self.collect();
        self.lose(peer, Loss::of(cause));
        if let (Some(loss), LossCause::Denied) = (&mut self.peers[peer.index()].loss, cause) {
            loss.cause = cause;
        }
    }

    fn is_awaited(&self, peer: Rank) -> bool {
        self.life != Life::Retired
            && matches!(self.rows_to.get(peer.index()), Some(Some(_)))
            && self.peers[peer.index()].stage == Stage::Awaited
    }
}
