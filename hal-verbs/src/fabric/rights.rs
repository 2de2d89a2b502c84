//! The keys with which peers write to this member's regions. A key is created at a grant, and ends
//! when the right is revoked.
//!
//! Some drivers ignore the access flags of a queue pair, and on others a reset revokes nothing, but
//! all refuse a key that has ended. Therefore a peer's right is its key, which is new at each
//! grant: that of a registration of the region's memory for that peer. Reads use another key, which
//! every peer has from the start and which never changes.
//!
//! If devices keep no order between writes, peers write to regions by updates, which this member
//! applies. A right is then only a number, which every update of the region contains: an update
//! that arrives after its right has ended is not applied.
//!
//! # Invariants
//! - A new key differs from all keys that have ended, for any peer of the region, since the
//!   connection to that peer was last re-established. So a late write never finds that its key has
//!   been given to another peer.
//! - `crate::protocol::keys` defines how a peer learns its key.

use std::io;

use tramontane_core::fabric::ErrorKind;
use tramontane_core::ids::Rank;

use super::Verbs;
use super::region_link::{Way, WriteRight};
use crate::adapter::MemoryRegion;
use crate::protocol::Notice;

/// Maximum number of attempts to get another key if a device returns a key that has just ended.
const TRIES: usize = 4;

impl Verbs {
    /// Creates a new key for a peer, and announces it.
    pub(super) fn give_key(&mut self, index: usize) -> Result<(), ErrorKind> {
        if self.goes_by_updates {
            let region = &mut self.regions[index];
            region.rights_given = region.rights_given.wrapping_add(1).max(1);
            region.announcer.tell(Some(region.rights_given));
            region.right = Some(WriteRight::Number(region.rights_given));
            self.tell_peer(self.regions[index].peer);
            return Ok(());
        }
        if self.regions[index].ended.is_full() {
            // After this, no earlier write is accepted, so the ended keys may be forgotten.
            self.make_anew(index)?;
        }
        let key = self.new_key(index)?;
        let region = &mut self.regions[index];
        region.announcer.tell(Some(key.remote_key()));
        region.right = Some(WriteRight::Key(key));
        self.tell_peer(self.regions[index].peer);
        Ok(())
    }

    /// Ends a peer's key. After this returns, no write with that key lands.
    pub(super) fn take_key(&mut self, index: usize) -> io::Result<()> {
        let region = &mut self.regions[index];
        let Some(right) = region.right.take() else { return Ok(()) };
        let is_key = matches!(right, WriteRight::Key(_));
        if is_key && region.announcer.may_be_known(right.name()) {
            // Writes with the key may still be in flight.
            region.ended.push(right.name());
        }
        region.announcer.tell(None);
        right.end()
    }

    /// Ends the keys of a lost peer whose connections have ended.
    pub(super) fn take_keys(&mut self, peer: Rank) {
        for region in self.regions.iter_mut().filter(|region| region.peer == peer) {
            if let Some(Err(error)) = region.right.take().map(WriteRight::end) {
                tracing::warn!(%peer, %error, "a key cannot be revoked");
            }
        }
    }

    /// Creates a key with which no write can be in flight.
    fn new_key(&mut self, index: usize) -> Result<MemoryRegion, ErrorKind> {
        let number = self.regions[index].number;
        let own = self.own_regions.get(usize::from(number)).ok_or(ErrorKind::OutOfRange)?;
        // These registrations are kept until another key has been found, because the device never
        // returns a key that is in use.
        let mut refused: [Option<MemoryRegion>; TRIES] = [const { None }; TRIES];
        for slot in &mut refused {
            let made = own.register().map_err(|error| {
                tracing::warn!(%error, bytes = own.memory.bytes(), "no key for a region");
                ErrorKind::Other
            })?;
            if !self.is_under_way(number, made.remote_key()) {
                return Ok(made);
            }
            *slot = Some(made);
        }
        // The device has few keys, so the connections on which writes with the last key may be in
        // flight are stopped.
        let made = refused[TRIES - 1].take().ok_or(ErrorKind::Other)?;
        for other in 0..self.regions.len() {
            let region = &self.regions[other];
            if region.number == number && region.ended.contains(made.remote_key()) {
                self.make_anew(other)?;
            }
        }
        Ok(made)
    }

    /// Returns whether a write by any peer may be in flight with an ended key of a region.
    fn is_under_way(&self, number: u8, key: u32) -> bool {
        let mut of_region = self.regions.iter().filter(|region| region.number == number);
        of_region.any(|region| region.ended.contains(key))
    }

    /// Renews the key after this end of a region's connection has been re-established, in an epoch
    /// that the peer knows or will learn.
    pub(super) fn renew_key(&mut self, index: usize) {
        let region = &mut self.regions[index];
        region.ended.clear();
        region.holder.forget();
        if let Some(right) = &region.right {
            region.announcer.tell(Some(right.name()));
        }
    }

    /// Handles a peer's notice about a key. Returns false if the peer has violated the protocol.
    pub(super) fn hear_of_key(&mut self, peer: Rank, notice: Notice) -> bool {
        let (Notice::KeyLow { region: number, .. }
        | Notice::KeyHigh { region: number, .. }
        | Notice::KeyGone { region: number }
        | Notice::KeyTaken { region: number }) = notice
        else {
            return true;
        };
        let Some(index) = self.region_numbered(peer, number) else { return false };
        let region = &mut self.regions[index];
        if matches!(notice, Notice::KeyTaken { .. }) {
            return region.announcer.answered();
        }
        let Some(is_new) = region.holder.hear(notice, region.epoch) else { return false };
        if let (true, Some(key)) = (is_new, region.holder.key()) {
            let was_refused = std::mem::take(&mut region.refused);
            let is_open = region.way == Way::Open;
            self.links[region.link].write_with(key);
            if was_refused && is_open {
                self.tell_restored(index);
            }
        }
        true
    }

    /// Sends the notices that are due about a region's key. Returns false if there is no room.
    pub(super) fn send_key_notices(&mut self, row: usize, index: usize) -> bool {
        let region = &self.regions[index];
        let (number, epoch) = (region.number, region.epoch);
        if region.holder.owes_answer() {
            if !self.send_notice(row, Notice::KeyTaken { region: number }) {
                return false;
            }
            self.regions[index].holder.answer_sent();
        }
        while let Some(notice) = self.regions[index].announcer.next(number, epoch) {
            if !self.send_notice(row, notice) {
                return false;
            }
            self.regions[index].announcer.sent(epoch);
        }
        true
    }

    /// Sends a peer all notices that are due to it.
    pub(super) fn tell_peer(&mut self, peer: Rank) {
        if let Some(row) = self.rows_to[peer.index()] {
            self.send_notices(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use tramontane_core::fabric::Region;
    use tramontane_core::ids::{NodeId, Rank, ViewId};

    use crate::fake::{Clock, Network, Profile};
    use crate::{Limits, Site, ViewOptions};

    #[test]
    fn key_shared_for_a_region_is_read_only() {
        let network = Network::new(1, Clock::Virtual);
        let device = network.add_device(Profile::strict());
        let site = Site::open(&device.wanted(), &Limits::default(), None).expect("it opens");
        let region = site.region(Region(3), 4096).expect("memory");
        let options = ViewOptions {
            view: ViewId(1),
            own: Rank(0),
            members: &[NodeId(1), NodeId(2)],
            row_bytes: &[4096, 4096],
            relayed: &[],
            regions: &[region],
            blocks: false,
        };
        let fabric = site.view(&options).expect("a view");
        assert_eq!(fabric.own_regions.len(), 1);
        assert!(!fabric.own_regions[0].memory.may_be_written());
    }
}
