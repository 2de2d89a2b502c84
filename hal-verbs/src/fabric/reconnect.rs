//! Re-establishes a region's connection that has broken, from either end:
//!
//! ```text
//! one end: reset, up in epoch e --Reconnect(e)--> the other: reset, up in epoch e
//! it is usable                  <-Reconnected(e)- it is usable, and reports `Restored`
//! ```
//!
//! The notices use the rows' connection. If both ends start at the same time, each treats the
//! other's notice as the answer, and the later epoch wins. An epoch shifts the packet numbers, so
//! that old packets are not mistaken for new ones. The end whose write was denied starts, so that
//! it can read at once what it may not write. The owner starts when it has revoked so many keys
//! that it must be sure about writes in flight. A right that the peer still has is announced again
//! with the same key, and a revoked key is never announced again. If an end does not come up after
//! all attempts, the peer is lost, because it would wait forever.

use tramontane_core::fabric::{ErrorKind, PermissionEvent};
use tramontane_core::ids::Rank;

use super::Verbs;
use super::region_link::{REGION_ACCESS, RegionLink, Way};
use crate::protocol::{Notice, epoch};
use crate::status::WorkStatus;

impl Verbs {
    /// Handles a failed request on a region's connection: either the request was denied, or the
    /// other end was reset. The rows' connection shows whether the peer itself has been lost.
    pub(super) fn fail_region(&mut self, link: usize, status: WorkStatus) {
        let Some(index) = self.regions.iter().position(|region| region.link == link) else {
            return;
        };
        if self.regions[index].way == Way::Broken || self.has_ended() {
            return;
        }
        let region = &mut self.regions[index];
        tracing::debug!(peer = %region.peer, region = region.region.0, %status, "a region's \
             connection is broken");
        region.way = Way::Broken;
        let connection = &mut self.links[link];
        self.waiting -= connection.queue.waiting();
        // If the reset fails, the queue pair is in the error state, which also stops it.
        let _ = connection.reset();
        self.give_up_region_lists(index);
        self.tell_denied(index);
        // If this fails, the peer is lost and reported as such.
        let _ = self.make_anew(index);
    }

    /// Starts a new epoch from this end.
    pub(super) fn make_anew(&mut self, index: usize) -> Result<(), ErrorKind> {
        let region = &mut self.regions[index];
        let epoch = epoch::next(region.epoch);
        let (link, peer) = (region.link, region.peer);
        self.waiting -= self.links[link].queue.waiting();
        let is_given_up = self.links[link].queue.in_flight() > 0;
        if self.links[link].reconnect(REGION_ACCESS, epoch).is_err() {
            // All attempts have failed. Without its connection to the region, the peer would wait
            // forever.
            region.way = Way::Broken;
            self.fail_post(link);
            return Err(ErrorKind::PeerLost);
        }
        region.epoch = epoch;
        region.ring_at = None;
        region.way = Way::Asked;
        region.due = Some(Notice::Reconnect { region: region.number, epoch });
        if is_given_up {
            // The write may have landed.
            self.tell_denied(index);
        }
        self.renew_key(index);
        self.tell_peer(peer);
        Ok(())
    }

    /// Handles a peer's start of a new epoch.
    pub(super) fn reconnect_asked(&mut self, peer: Rank, number: u8, epoch: u32) {
        let Some(index) = self.region_numbered(peer, number) else { return };
        let region = &mut self.regions[index];
        if epoch == region.epoch {
            // Both ends started at the same time, and both are up.
            if region.way == Way::Asked {
                self.restored(index);
            }
            return;
        }
        if !epoch::is_later(epoch, region.epoch) {
            // The peer will receive the later epoch of this end.
            return;
        }
        let link = region.link;
        let connection = &mut self.links[link];
        self.waiting -= connection.queue.waiting();
        let has_updated = region.has_updated;
        let is_denied = connection.queue.in_flight() > 0 || has_updated;
        if connection.reconnect(REGION_ACCESS, epoch).is_err() {
            region.way = Way::Broken;
            return self.fail_post(link);
        }
        region.epoch = epoch;
        region.ring_at = None;
        if is_denied {
            // The write may have landed.
            self.give_up_region_lists(index);
            self.tell_denied(index);
        }
        let region = &mut self.regions[index];
        region.due = Some(Notice::Reconnected { region: number, epoch });
        self.renew_key(index);
        self.restored(index);
    }

    /// Handles the peer's answer to a start of a new epoch.
    pub(super) fn reconnect_answered(&mut self, peer: Rank, number: u8, epoch: u32) {
        let Some(index) = self.region_numbered(peer, number) else { return };
        if self.regions[index].epoch == epoch && self.regions[index].way == Way::Asked {
            self.restored(index);
        }
    }

    fn restored(&mut self, index: usize) {
        self.regions[index].way = Way::Open;
        self.tell_restored(index);
    }

    fn tell_denied(&mut self, index: usize) {
        let (view, RegionLink { peer, region, .. }) = (self.view, &self.regions[index]);
        let denied = PermissionEvent::Denied { view, peer: *peer, region: *region };
        self.permissions.push(denied);
    }

    /// Reports that the region can be written again. A write that it refused is worth a retry.
    pub(super) fn tell_restored(&mut self, index: usize) {
        let (view, RegionLink { peer, region, .. }) = (self.view, &self.regions[index]);
        let restored = PermissionEvent::Restored { view, peer: *peer, region: *region };
        self.permissions.push(restored);
        self.retry_due = true;
    }

    pub(super) fn region_numbered(&self, peer: Rank, number: u8) -> Option<usize> {
        self.regions.iter().position(|link| link.peer == peer && link.number == number)
    }

    /// Sends the notices about regions that are due to a peer, over the rows' connection.
    pub(super) fn send_reconnects(&mut self, row: usize, peer: Rank) {
        for index in 0..self.regions.len() {
            if self.regions[index].peer != peer {
                continue;
            }
            if let Some(notice) = self.regions[index].due {
                if !self.send_notice(row, notice) {
                    return;
                }
                self.regions[index].due = None;
            }
            // Key notices follow the epoch to which they belong.
            if !self.send_key_notices(row, index) {
                return;
            }
        }
    }
}
