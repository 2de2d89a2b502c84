//! Regions on devices that keep no order between writes: lists to a region are sent as updates on
//! the rows' connection, and the region's owner applies them under the sender's current right
//! (TRM-8). Reads use the region's own connection, as on other devices.
//!
//! # Guarantees
//! - Writes to a peer's rows and regions are seen in the order in which they were posted.
//! - After a right has been revoked, no update under it is applied, even if it had arrived before.
//!   Its sender is told once, by a new epoch of the region's connection.
//! - A list completes once its owner has processed all of its updates, and the sender knows that.
//!   The lists that an owner refuses do not complete.

use tramontane_core::fabric::{ErrorKind, Token, Write};
use tramontane_core::ids::Rank;

use super::link::Behind;
use super::region_link::{Way, WriteRight};
use super::updates::write_records;
use super::{TOKENS_MAX, Verbs};
use crate::protocol::Notice;
use crate::protocol::update::REGION_LIST_BYTES_MAX;
use crate::protocol::update::{RegionTarget, Update};

impl Verbs {
    /// Posts a list to a region whose right is known, after its ranges have been checked.
    pub(super) fn post_region_as_updates(
        &mut self,
        index: usize,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let bytes: usize = writes.iter().map(|write| write.length).sum();
        if bytes > REGION_LIST_BYTES_MAX {
            return Err(ErrorKind::OutOfRange);
        }
        let region = &self.regions[index];
        let right = region.holder.key().ok_or(ErrorKind::Revoked)?;
        let target = RegionTarget { number: region.number, right };
        let row = self.rows_to[to.index()].ok_or(ErrorKind::OutOfRange)?;
        let has_place = token.is_none() || self.done.len() + self.waiting < TOKENS_MAX;
        let Self { links, peers, buffers, counters, builder, .. } = self;
        let peer = &mut peers[to.index()];
        let rings = peer.doorbell.rings_with_post();
        let behind = if rings { Behind::Notice(Notice::Ring.encode()) } else { Behind::Nothing };
        let posted = if has_place {
            let rows = builder.rows();
            let asks = token.is_some();
            links[row].post_region_list(buffers, (writes, target), rows, behind, asks, counters)
        } else {
            Err(ErrorKind::QueueFull)
        };
        if self.account(to, posted, token)? {
            let last = self.links[row].last_update();
            self.regions[index].has_updated = true;
            self.regions[index].tokens.extend(token.map(|token| (last, token)));
        }
        Ok(())
    }

    /// Completes the lists to a peer's regions whose updates the peer has processed.
    pub(super) fn complete_region_lists(&mut self, peer: Rank, taken_there: u64) {
        for region in self.regions.iter_mut().filter(|region| region.peer == peer) {
            while let Some((last, token)) = region.tokens.front().copied()
                && last < taken_there
            {
                region.tokens.pop_front();
                self.waiting -= 1;
                self.done.push_back(token);
            }
        }
    }

    /// Gives up the lists to a peer's region that have not completed.
    pub(super) fn give_up_region_lists(&mut self, index: usize) {
        self.waiting -= self.regions[index].tokens.len();
        self.regions[index].tokens.clear();
        self.regions[index].has_updated = false;
    }

    /// Applies an update to a region, if its sender has the right that it names. Returns false if
    /// no correct member sends the update.
    pub(super) fn apply_to_region(
        &self,
        update: &Update<'_>,
        rank: Rank,
        target: RegionTarget,
    ) -> bool {
        let Some(index) = self.region_numbered(rank, target.number) else { return false };
        if !self.has_right(index, target.right) {
            return true;
        }
        let Some(own) = self.own_regions.get(usize::from(target.number)) else { return false };
        write_records(update, own.memory.pages().writer())
    }

    fn has_right(&self, index: usize, right: u32) -> bool {
        self.regions[index].right.as_ref().map(WriteRight::name) == Some(right)
    }

    /// Tells the sender of an update that it was not applied, unless it has been told.
    pub(super) fn refuse_ended_right(&mut self, rank: Rank, target: RegionTarget) {
        let Some(index) = self.region_numbered(rank, target.number) else { return };
        let is_told = self.regions[index].refused_right == Some(target.right);
        if self.has_right(index, target.right) || is_told {
            return;
        }
        self.regions[index].refused_right = Some(target.right);
        if self.regions[index].way == Way::Open {
            // If this fails, the peer is lost and reported as such.
            let _ = self.make_anew(index);
        }
    }
}
