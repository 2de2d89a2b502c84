//! Snapshots: the state of a replica as of the entries that it has delivered, for a replica that
//! lacks entries that its group no longer has. A snapshot also includes the application's own state
//! at the same moment (TRM-6).

use super::common::Common;
use super::link::Memory;
use super::log::Log;
use super::progress::Halt;
use super::replica::Replica;
use super::role::{Follower, Leader, Role};
use crate::ids::Rank;

impl Replica<'_> {
    /// Returns the number of cells in a snapshot.
    #[must_use]
    pub fn snapshot_cells(&self) -> usize {
        let Common { counts, replies, .. } = &self.common;
        counts.cells().saturating_add(replies.all().len()).saturating_add(1)
    }

    /// Stores this replica's state as of the entries that it has delivered. The application's state
    /// at this moment belongs to the snapshot too. Returns `None` if the number of cells does not
    /// match.
    #[must_use]
    pub fn snapshot(&self, cells: &mut [u64]) -> Option<()> {
        let Common { counts, replies, delivered, .. } = &self.common;
        let (first, rest) = cells.split_first_mut()?;
        *first = *delivered;
        let (to_counts, to_replies) = rest.split_at_mut_checked(counts.cells())?;
        if to_replies.len() != replies.all().len() {
            return None;
        }
        // bound: the cells of replies
        for (to, from) in to_replies.iter_mut().zip(replies.all()) {
            *to = *from;
        }
        counts.save(to_counts)
    }

    /// Returns whether this replica would continue from a snapshot. The snapshot must be ahead of
    /// what this replica has delivered, and this replica must [need one](Self::needs_snapshot) or
    /// not count in quorums yet. Other replicas receive what they lack through their logs, which
    /// then have no gaps.
    #[must_use]
    pub fn wants_snapshot(&self, cells: &[u64]) -> bool {
        let is_newer = cells.first().is_some_and(|place| *place > self.delivered());
        is_newer && !self.is_leader() && (self.needs_snapshot() || !self.is_voter())
    }

    /// Continues from another replica's snapshot, or from its own on its disk, after the caller has
    /// restored the application's state. A snapshot that is [not wanted](Self::wants_snapshot), or
    /// cells of another overlay, changes nothing.
    ///
    /// # Errors
    /// Fails if the memory does not fit.
    pub fn restore<M: Memory>(&mut self, cells: &[u64], memory: &M) -> Result<bool, Halt> {
        let Some((place, rest)) = cells.split_first() else { return Ok(false) };
        let is_wanted = self.wants_snapshot(cells);
        let Self { common, role } = self;
        let (true, Role::Follower(follower)) = (is_wanted, &mut *role) else { return Ok(false) };
        let Some((counts, replies)) = rest.split_at_checked(common.counts.cells()) else {
            return Ok(false);
        };
        let is_whole = replies.len() == common.replies.all().len();
        if !is_whole || common.counts.restore(counts).is_none() {
            return Ok(false);
        }
        // bound: the cells of replies
        for (to, from) in common.replies.all_mut().iter_mut().zip(replies) {
            *to = *from;
        }
        // The log stays unchanged, because another replica may have the permission to write to it.
        let log = Log::new(memory.log(), common.shape);
        let stamp = log.control()?.stamp;
        log.set_begins(*place)?;
        common.delivered = *place;
        // Without children, the entries below are not needed.
        let gapped = (!common.children.is_empty()).then_some(stamp);
        let granted_to = follower.granted_to;
        *follower = Follower { granted_to, gapped, ..Follower::default() };
        // On some fabrics a stored value is visible at once, but the host saves the snapshot first.
        common.is_restored = true;
        Ok(true)
    }
}

impl Common<'_> {
    /// Publishes a snapshot that was restored after the last step.
    pub(super) fn show_restored<M: Memory>(&mut self, role: &Role, memory: &M) -> Result<(), Halt> {
        if !core::mem::take(&mut self.is_restored) {
            return Ok(());
        }
        // bound: the links
        for link in self.links.all() {
            self.show_all(role, link, memory)?;
        }
        Ok(())
    }

    /// Returns the log index starting at which a leader replaces a peer's log below the peer's
    /// delivered count. Above `floor`, the peer may lack entries that children need. Below `floor`,
    /// the peer's log may differ from the leader's: such entries were in the log before the peer
    /// restored a snapshot, and were never decided. The peer would pass them on to children if it
    /// led.
    pub(super) fn lacking_from(
        &self,
        leader: &Leader,
        peer: Rank,
        floor: u64,
        delivered: u64,
        log: Log<'_>,
    ) -> Result<u64, Halt> {
        let entries = self.shape.entries();
        let mut place = log.begins()?.max(leader.tail.saturating_sub(u64::from(entries)));
        // bound: the entries of the log
        for _ in 0..entries {
            if place >= floor {
                break;
            }
            let copied = log.load_copied(peer, place)?;
            if copied.is_some() && copied != log.load(place)? {
                return Ok(place);
            }
            place = place.saturating_add(1);
        }
        Ok(log.differs_from(peer, floor, delivered)?)
    }

    /// Returns whether the local log has everything that a peer with this delivered count lacks.
    /// Entries below the local snapshot do not count, because they may never have been decided.
    pub(super) fn has_from(
        &self,
        leader: &Leader,
        delivered: u64,
        log: Log<'_>,
    ) -> Result<bool, Halt> {
        Ok(delivered >= log.begins()? && self.is_kept(leader, delivered, log)?)
    }
}
