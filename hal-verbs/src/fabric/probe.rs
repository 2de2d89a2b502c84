//! The first writes to a peer: whether a way leads there, for small packets and for full ones
//! (HAL-3).
//!
//! Two writes go to a peer before anything else, and each is answered or never is:
//! 1. one without bytes: an address that looks right and leads nowhere is found by it;
//! 2. one that fills a packet of the connection: a switch that drops what is longer than it
//!    carries, and says nothing, is found by it.
//!
//! A write of the connection is sent again several times before it fails, so one lost packet loses
//! no peer.
//!
//! # Invariants
//! - The bytes come from behind the own row, and go behind the peer's copy of it: both ends have
//!   [`PROBE_BYTES_MAX`] there that mean nothing and that nobody reads. Adapters read content late,
//!   so bytes of a row would be a moment of it that nobody posted.
//! - A peer is ready once both writes are answered.

use tramontane_core::ids::Rank;

use super::{LossReason, Stage, Verbs};
use crate::protocol::Counters;
use crate::status::WorkStatus;

/// The longest packet's payload.
pub(crate) const PROBE_BYTES_MAX: usize = 4096;

/// Where the bytes for it begin behind a row: cells of the row never share a cache line with them.
pub(crate) const fn probe_offset(row_bytes: usize) -> usize {
    const CACHE_LINE: usize = 64;
    row_bytes.next_multiple_of(CACHE_LINE)
}

impl Verbs {
    /// Posts the first writes to a peer.
    pub(super) fn probe(&mut self, peer: Rank, row: usize) {
        // Not among those that are counted.
        let mut uncounted = Counters::default();
        let Self { links, buffers, .. } = self;
        if links[row].post_probe(buffers, &mut uncounted).is_err() {
            return self.fail_post(row);
        }
        self.peers[peer.index()].stage = Stage::Tried;
    }

    /// One of the first writes is answered; the later one makes the peer ready.
    pub(super) fn probe_answered(&mut self, peer: Rank) {
        match self.peers[peer.index()].stage {
            Stage::Tried => self.peers[peer.index()].stage = Stage::SmallPassed,
            _ => self.answered(peer),
        }
    }

    /// What a request that failed says of the way, if the peer was being tried.
    pub(super) fn probe_failed(&self, index: usize, status: WorkStatus) -> Option<LossReason> {
        let link = &self.links[index];
        let is_silent = status == WorkStatus::RetriesExceeded;
        let is_full = self.peers[link.peer.index()].stage == Stage::SmallPassed;
        (is_silent && is_full).then(|| LossReason::FullPackets { bytes: link.packet_bytes() })
    }
}
