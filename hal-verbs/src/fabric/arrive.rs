//! Peers that come one by one, where views change: each end is brought up by what the other told,
//! over whatever way they talk, and nothing is posted before both are.
//!
//! ```text
//! one end                                  the other
//! card_for ------------- card -----------> connect: it can be written to
//! connect  <------------ card ------------ card_for
//!          --------- "connected" --------> admit: it tries first writes
//! admit    <-------- "connected" ---------
//!          ------ the first writes ------> (its device)
//! ready    <--------- answers ------------
//! ```
//!
//! A peer may have been told before this end is, and write already: what comes from a peer that is
//! awaited is taken.

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::Rank;

use super::peer::Ends;
use super::{Life, Loss, Stage, Verbs};
use crate::commands::Job;

impl Verbs {
    /// What a peer is to be told of this member's end of their connections, once that is made.
    #[must_use]
    pub fn card_for(&self, peer: Rank) -> Vec<u8> {
        self.handshake.card_for(&self.links, peer).encode()
    }

    /// Begins to bring this end of the connections with a peer up, by its card: once they are up
    /// the peer may write. False if that cannot be: then the peer is lost, as it is if the device
    /// finds no way there.
    pub fn connect(&mut self, peer: Rank, card: &[u8]) -> bool {
        if !self.is_awaited(peer) || !self.has_card(peer) {
            return false;
        }
        match self.handshake.connections(&mut self.links, peer, card) {
            Ok(connections) => {
                self.peers[peer.index()].ends = Ends::Away;
                self.commands.hand_in(Job::Connect { peer, connections });
                self.take_built();
            }
            Err(reason) => self.lose(peer, Loss::because(reason)),
        }
        self.is_awaited(peer)
    }

    /// A peer's end is up, and so is this one. It is ready once first writes to it, one of nothing
    /// and one of a full packet, are answered: a way that leads nowhere, or that long packets do
    /// not pass, is told as a loss before anything is posted (HAL-3).
    pub fn admit(&mut self, peer: Rank) {
        if !self.is_awaited(peer) || !self.is_connected(peer) {
            return;
        }
        let Some(row) = self.rows_to[peer.index()] else { return };
        self.probe(peer, row);
    }

    /// The first writes to a peer are answered: it may be written to.
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
        if self.has_ended() || !matches!(self.rows_to.get(peer.index()), Some(Some(_))) {
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
}
