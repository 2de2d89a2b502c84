//! A region's connection that broke is made anew, from either end:
//!
//! ```text
//! one end: reset, up in epoch e --Reconnect(e)--> the other: reset, up in epoch e
//! it may be used                <-Reconnected(e)- it may be used, told `Restored`
//! ```
//!
//! The notices go over the connection of the rows. When both ends begin at once, each takes the
//! other's notice for the answer; the later epoch wins. An epoch moves the packets' numbers, so
//! that none from before is taken for a new one. The end whose write was denied begins, so that it
//! can read at once what it may not write; and the owner's, when it has ended so many keys that it
//! must be sure of what is under way. A right that a peer has is told again, with the same key, and
//! none that was ended comes back. An end that does not come up, however often it is tried, loses
//! the peer: it would wait for ever else.

use tramontane_core::fabric::{ErrorKind, PermissionEvent};
use tramontane_core::ids::Rank;

use super::Verbs;
use super::permissions::Way;
use crate::adapter::Access;
use crate::protocol::{Notice, epoch};
use crate::status::WorkStatus;

/// What queue pairs allow: which writes are taken is said by keys alone.
pub(crate) const ACCESS: Access = Access::REMOTE_READ.union(Access::REMOTE_WRITE);

impl Verbs {
    /// A request on a region's connection failed: it was denied, or the other end was reset.
    /// Whether the peer itself is gone shows on the connection of the rows.
    pub(super) fn fail_region(&mut self, link: usize, status: WorkStatus) {
        let Some(index) = self.regions.iter().position(|region| region.link == link) else {
            return;
        };
        if self.regions[index].way == Way::Broken || self.has_ended() {
            return;
        }
        let region = &mut self.regions[index];
        tracing::debug!(peer = %region.peer, region = region.region.0, %status, "a region's way is broken");
        region.way = Way::Broken;
        let connection = &mut self.links[link];
        self.waiting -= connection.queue.waiting();
        // If it cannot be reset it is in error, which stops it as well.
        let _ = connection.reset();
        let (peer, region) = (region.peer, region.region);
        let view = self.view;
        self.permissions.push(PermissionEvent::Denied { view, peer, region });
        // Without success the peer is lost, and told as such.
        let _ = self.make_anew(index);
    }

    /// Begins a new epoch from this end.
    pub(super) fn make_anew(&mut self, index: usize) -> Result<(), ErrorKind> {
        let region = &mut self.regions[index];
        let epoch = epoch::next(region.epoch);
        let (link, peer) = (region.link, region.peer);
        self.waiting -= self.links[link].queue.waiting();
        let is_given_up = self.links[link].queue.in_flight() > 0;
        if self.links[link].reconnect(ACCESS, epoch).is_err() {
            // Tried as often as is sensible: without its way to the region the peer would wait for
            // ever.
            region.way = Way::Broken;
            self.fail_post(link);
            return Err(ErrorKind::PeerLost);
        }
        region.epoch = epoch;
        region.ring_at = None;
        region.way = Way::Asked;
        region.due = Some(Notice::Reconnect { region: region.number, epoch });
        if is_given_up {
            // Whether it landed is not known.
            let region = region.region;
            let view = self.view;
            self.permissions.push(PermissionEvent::Denied { view, peer, region });
        }
        self.renew_key(index);
        self.tell_peer(peer);
        Ok(())
    }

    /// The peer began a new epoch.
    pub(super) fn reconnect_asked(&mut self, peer: Rank, number: u8, epoch: u32) {
        let Some(index) = self.region_numbered(peer, number) else { return };
        let region = &mut self.regions[index];
        if epoch == region.epoch {
            // Both began at once, and both ends are up.
            if region.way == Way::Asked {
                self.restored(index);
            }
            return;
        }
        if !epoch::is_later(epoch, region.epoch) {
            // It hears of the later one from us.
            return;
        }
        let link = region.link;
        let connection = &mut self.links[link];
        self.waiting -= connection.queue.waiting();
        let is_denied = connection.queue.in_flight() > 0;
        if connection.reconnect(ACCESS, epoch).is_err() {
            region.way = Way::Broken;
            return self.fail_post(link);
        }
        region.epoch = epoch;
        region.ring_at = None;
        if is_denied {
            // Whether it landed is not known.
            let (peer, region) = (region.peer, region.region);
            let view = self.view;
            self.permissions.push(PermissionEvent::Denied { view, peer, region });
        }
        let region = &mut self.regions[index];
        region.due = Some(Notice::Reconnected { region: number, epoch });
        self.renew_key(index);
        self.restored(index);
    }

    /// The peer answered.
    pub(super) fn reconnect_answered(&mut self, peer: Rank, number: u8, epoch: u32) {
        let Some(index) = self.region_numbered(peer, number) else { return };
        if self.regions[index].epoch == epoch && self.regions[index].way == Way::Asked {
            self.restored(index);
        }
    }

    fn restored(&mut self, index: usize) {
        let region = &mut self.regions[index];
        region.way = Way::Open;
        let (peer, region) = (region.peer, region.region);
        let view = self.view;
        self.permissions.push(PermissionEvent::Restored { view, peer, region });
        self.retry_due = true;
    }

    pub(super) fn region_numbered(&self, peer: Rank, number: u8) -> Option<usize> {
        self.regions.iter().position(|link| link.peer == peer && link.number == number)
    }

    /// Sends the notices about regions that are due to a peer, over the connection of the rows.
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
            // Behind the epoch that they are for.
            if !self.send_key_notices(row, index) {
                return;
            }
        }
    }
}
