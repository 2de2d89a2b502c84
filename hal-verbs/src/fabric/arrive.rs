//! The arrival of peers, one by one, in views that change. Each end is brought up with the other's
//! card, which any channel may carry. Nothing is posted until both ends are up.
//!
//! ```text
//! one end                                  the other
//! card_for ------------- card -----------> connect: it accepts writes
//! connect  <------------ card ------------ card_for
//!          --------- "connected" --------> admit: it posts its first writes
//! admit    <-------- "connected" ---------
//!          ------ the first writes ------> (its device)
//! ready    <--------- answers ------------
//! ```
//!
//! A peer may learn that this end is up before this member learns of the peer's, and may already
//! write. Therefore messages from an awaited peer are accepted.

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::Rank;

use super::peer::Ends;
use super::{Life, Loss, PeerStage, Verbs};
use crate::commands::Job;

impl Verbs {
    /// Returns the card that describes this member's end of the connections to a peer, once the end
    /// has been created.
    #[must_use]
    pub fn card_for(&self, peer: Rank) -> Vec<u8> {
        self.handshake.card_for(&self.links, peer).encode()
    }

    /// Starts to bring up this end of the connections with a peer, using the peer's card. Once they
    /// are up, the peer may write. Returns `false` if that is impossible. The peer is then lost, as
    /// it is if the device finds no path to the peer.
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

    /// Records that a peer's end is up, like this end. The peer is ready once the first writes to
    /// it, one empty and one of a full packet, have been acknowledged. A path that leads nowhere,
    /// or that drops long packets, is reported as a loss before anything is posted (HAL-3).
    pub fn admit(&mut self, peer: Rank) {
        if !self.is_awaited(peer) || !self.is_connected(peer) {
            return;
        }
        let Some(row) = self.rows_to[peer.index()] else { return };
        self.probe(peer, row);
    }

    /// Records that the first writes to a peer have been acknowledged, so posts to it may begin.
    pub(super) fn answered(&mut self, peer: Rank) {
        let is_armed = self.armed;
        let answering = &mut self.peers[peer.index()];
        answering.stage = PeerStage::Live;
        if matches!(self.life, Life::Open(_)) {
            answering.ready_untold = true;
            self.untold += 1;
        }
        if is_armed {
            answering.doorbell.arm();
        }
        // Earlier queries by the peer can now be answered.
        if let Some(row) = self.rows_to[peer.index()] {
            self.send_notices(row);
        }
        self.post_blocks(peer);
    }

    /// Records that a peer is gone, as reported by another channel. If the peer cut this member
    /// off, that is recorded even for a lost peer, because such a peer need not be dead.
    pub fn lose_peer(&mut self, peer: Rank, cause: LossCause) {
        if self.has_ended() || !matches!(self.rows_to.get(peer.index()), Some(Some(_))) {
            return;
        }
        // Everything that the peer posted before it left has been acknowledged and has therefore
        // arrived. Its notices still matter.
        self.collect();
        self.lose(peer, Loss::of(cause));
        if let (Some(loss), LossCause::Denied) = (&mut self.peers[peer.index()].loss, cause) {
            loss.cause = cause;
        }
    }
}
