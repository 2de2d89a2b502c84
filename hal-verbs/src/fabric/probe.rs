//! The first writes to a peer, which show whether a path to the peer carries small and full packets
//! (HAL-3).
//!
//! Two writes are posted to a peer before anything else. Each is either acknowledged or not:
//! 1. an empty write, which detects an address that looks right but leads nowhere;
//! 2. a write that fills a packet of the connection, which detects a switch that silently drops
//!    packets that are too long for it.
//!
//! The connection retransmits a write several times before it fails, so one lost packet does not
//! lose a peer.
//!
//! # Invariants
//! - The bytes come from memory after the local row, and go to memory after the peer's copy of it.
//!   Both ends have bytes there that have no meaning and are never read (see `site::rows`). NICs
//!   read content late, so bytes of a row could carry a state that was never posted.
//! - A peer is ready once both writes have been acknowledged.

use tramontane_core::ids::Rank;

use super::{LossReason, PeerStage, Verbs};
use crate::protocol::Counters;
use crate::status::WorkStatus;

impl Verbs {
    /// Posts the first writes to a peer.
    pub(super) fn probe(&mut self, peer: Rank, row: usize) {
        // The first writes are not counted.
        let mut uncounted = Counters::default();
        let Self { links, buffers, .. } = self;
        if links[row].post_probe(buffers, &mut uncounted).is_err() {
            return self.fail_post(row);
        }
        self.peers[peer.index()].stage = PeerStage::Tried;
    }

    /// Records that one of the first writes has been acknowledged. The later one makes the peer
    /// ready.
    pub(super) fn probe_answered(&mut self, peer: Rank) {
        match self.peers[peer.index()].stage {
            PeerStage::Tried => self.peers[peer.index()].stage = PeerStage::SmallPassed,
            _ => self.answered(peer),
        }
    }

    /// Returns what a failed request says about the path, if the peer was being probed.
    pub(super) fn probe_failed(&self, index: usize, status: WorkStatus) -> Option<LossReason> {
        let link = &self.links[index];
        let is_silent = status == WorkStatus::RetriesExceeded;
        let is_full = self.peers[link.peer.index()].stage == PeerStage::SmallPassed;
        (is_silent && is_full).then(|| LossReason::FullPackets { bytes: link.packet_bytes() })
    }
}
