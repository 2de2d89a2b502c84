//! Regions whose owner decides, by means of keys, which peers may write: see `rights`.
//!
//! Each pair of members has one connection per region, in a protection domain of that region: the
//! keys of a region's memory do not work on the connection of another region. A post to a peer that
//! has granted no key is refused locally, before it is sent. A write with a revoked key is refused
//! by the owner's device and breaks the connection at both ends. The connection is then
//! re-established: see `reconnect`.
//!
//! If devices keep no order, lists to regions are sent as updates (`region_updates`), and the
//! regions' connections carry only reads.
//!
//! A sleeping peer is rung once the writes to its region have been acknowledged, because the ring
//! uses the rows' connection and would otherwise overtake the writes.

use tramontane_core::fabric::{
    Area, ErrorKind, PermissionEvent, Permissions, Region, Token, WRITES_MAX, Write,
};
use tramontane_core::ids::{Rank, ViewId};

use super::link::Behind;
use super::region_link::Way;
use super::{PeerStage, TOKENS_MAX, Verbs};
use crate::adapter::Operation;
use crate::protocol::update::REGION_LIST_BYTES_MAX;
use crate::status::WorkStatus;

impl Verbs {
    /// Returns a change of permissions that has been found without querying the device.
    pub(crate) fn told_permission(&mut self) -> Option<PermissionEvent> {
        self.permissions.events.pop_front()
    }

    /// Returns the connection that carries a list: a region's, or otherwise the row's.
    #[inline]
    pub(super) fn link_for(&self, row: usize, to: Rank, writes: &[Write]) -> usize {
        match writes.first() {
            Some(write) if write.target.region != Region::ROW => self
                .region_index(to, write.target.region)
                .map_or(row, |index| self.regions[index].link),
            _ => row,
        }
    }

    fn region_index(&self, peer: Rank, region: Region) -> Option<usize> {
        self.regions.iter().position(|link| link.peer == peer && link.region == region)
    }

    /// Returns a region's connection to a live peer.
    fn region_of(&self, view: ViewId, peer: Rank, region: Region) -> Result<usize, ErrorKind> {
        self.target(view, peer)?;
        self.region_index(peer, region).ok_or(ErrorKind::OutOfRange)
    }

    /// Checks whether a region's connection can be posted to.
    fn passable(&self, index: usize) -> Result<(), ErrorKind> {
        match self.regions[index].way {
            Way::Open => Ok(()),
            Way::Asked => Err(ErrorKind::QueueFull),
            Way::Broken => Err(ErrorKind::Revoked),
        }
    }

    pub(super) fn post_region(
        &mut self,
        link: usize,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let index = self
            .regions
            .iter()
            .position(|region| region.link == link)
            .ok_or(ErrorKind::OutOfRange)?;
        let way = self.passable(index);
        let Self { links, peers, buffers, counters, .. } = self;
        let (connection, peer) = (&mut links[link], &mut peers[to.index()]);
        let bytes_max = self.capabilities.write_bytes_max;
        if writes.len() > WRITES_MAX
            || !writes.iter().all(|write| connection.fits(write, bytes_max))
        {
            return Err(ErrorKind::OutOfRange);
        }
        way?;
        if self.regions[index].holder.key().is_none() {
            self.regions[index].refused = true;
            return Err(ErrorKind::Revoked);
        }
        if self.goes_by_updates {
            return self.post_region_as_updates(index, to, writes, token);
        }
        let rings = peer.doorbell.rings_with_post();
        let has_place = token.is_none() || self.done.len() + self.waiting < TOKENS_MAX;
        if !has_place || !connection.queue.has_room(writes.len()) {
            counters.refused += 1;
            peer.refused = true;
            return Err(ErrorKind::QueueFull);
        }
        let behind = if rings { Behind::Completion } else { Behind::Nothing };
        match connection.post_writes(buffers, (writes, &[]), behind, token, counters) {
            Ok(true) => {
                peer.doorbell.will_ring(rings);
                let region = &mut self.regions[index];
                region.posted = !rings;
                if rings {
                    region.ring_at = Some(connection.queue.posted());
                }
                self.waiting += usize::from(token.is_some());
            }
            Ok(false) => self.done.extend(token),
            Err(ErrorKind::PeerLost) => {
                self.fail_region(link, WorkStatus::Flushed);
                return Err(ErrorKind::Revoked);
            }
            Err(kind) => return Err(kind),
        }
        self.counters.lists += 1;
        Ok(())
    }

    /// Rings the peer, if necessary, for completed requests on a region's connection.
    pub(super) fn ring_for_done(&mut self, link: usize) {
        let Some(region) = self.regions.iter_mut().find(|region| region.link == link) else {
            return;
        };
        let queue = &self.links[link].queue;
        let done = queue.posted() - queue.in_flight();
        if region.ring_at.is_some_and(|at| at <= done) {
            region.ring_at = None;
            let peer = region.peer;
            self.peers[peer.index()].doorbell.ring();
            if let Some(row) = self.rows_to[peer.index()] {
                self.send_notices(row);
            }
        }
    }

    /// Ensures that a sleeping peer is rung once the writes to its regions have been acknowledged.
    pub(super) fn ring_for_regions(&mut self, peer: Rank) {
        for region in self.regions.iter_mut().filter(|region| region.peer == peer) {
            if std::mem::take(&mut region.posted) {
                region.ring_at = Some(self.links[region.link].queue.posted());
            }
        }
        let is_due =
            self.regions.iter().any(|region| region.peer == peer && region.ring_at.is_some());
        if is_due {
            self.flush();
        }
        for index in 0..self.regions.len() {
            if self.regions[index].peer == peer {
                self.ring_for_done(self.regions[index].link);
            }
        }
    }
}

impl Permissions for Verbs {
    fn region_list_bytes_max(&self) -> usize {
        let most = self.capabilities.write_bytes_max;
        if self.goes_by_updates { most.min(REGION_LIST_BYTES_MAX) } else { most }
    }

    fn grant(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        let index = self.region_of(view, peer, region)?;
        if self.regions[index].right.is_some() {
            return Ok(());
        }
        self.give_key(index)
    }

    fn revoke(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        let index = self.region_of(view, peer, region)?;
        if let Err(error) = self.take_key(index) {
            tracing::warn!(%peer, region = region.0, %error, "a key cannot be revoked");
            self.cut_peer(view, peer);
            return Err(ErrorKind::Other);
        }
        self.tell_peer(peer);
        Ok(())
    }

    fn may_write(&self, view: ViewId, peer: Rank, region: Region) -> bool {
        self.region_of(view, peer, region).is_ok_and(|index| self.regions[index].right.is_some())
            && self.peers[peer.index()].stage == PeerStage::Live
    }

    fn read(
        &mut self,
        view: ViewId,
        from: Rank,
        source: Area,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let index = self.region_of(view, from, source.region)?;
        let link = self.regions[index].link;
        let far = self.links[link].far_area(source.offset, length).ok_or(ErrorKind::OutOfRange)?;
        let is_inside = into.region != Region::ROW && self.links[link].has_own_area(into, length);
        if !is_inside || length == 0 || length > self.capabilities.write_bytes_max {
            return Err(ErrorKind::OutOfRange);
        }
        self.passable(index)?;
        let Self { links, buffers, counters, .. } = self;
        if self.done.len() + self.waiting >= TOKENS_MAX || !links[link].queue.has_room(1) {
            counters.refused += 1;
            return Err(ErrorKind::QueueFull);
        }
        let range = Some((into, length));
        self.waiting += 1;
        if links[link]
            .post_one(buffers, |_| Operation::Read(far), range, Some(token), true, counters)
            .is_err()
        {
            self.fail_region(link, WorkStatus::Flushed);
            return Err(ErrorKind::Revoked);
        }
        Ok(())
    }

    fn poll_permission(&mut self) -> Option<PermissionEvent> {
        if self.permissions.events.is_empty() {
            self.take_batch();
        }
        self.told_permission()
    }
}
