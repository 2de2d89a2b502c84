//! Snapshots: what a replica knows at what it has delivered, for one that lacks entries which its
//! group has no longer. The application's own state of the same moment belongs to it (TRM-6).

use super::bodies::Held;
use super::link::Memory;
use super::log::Log;
use super::progress::Halt;
use super::replica::Replica;
use crate::ids::Rank;

impl Replica<'_> {
    /// How many cells a snapshot has.
    #[must_use]
    pub fn snapshot_cells(&self) -> usize {
        self.counts.cells().saturating_add(self.replies.all().len()).saturating_add(1)
    }

    /// Stores what this replica knows at what it has delivered: the application's state of this
    /// moment belongs to it. None if there are not exactly as many cells.
    #[must_use]
    pub fn snapshot(&self, cells: &mut [u64]) -> Option<()> {
        let (first, rest) = cells.split_first_mut()?;
        *first = self.delivered;
        let (counts, replies) = rest.split_at_mut_checked(self.counts.cells())?;
        if replies.len() != self.replies.all().len() {
            return None;
        }
        // bound: the cells of replies
        for (to, from) in replies.iter_mut().zip(self.replies.all()) {
            *to = *from;
        }
        self.counts.save(counts)
    }

    /// Whether this replica would go on from a snapshot: one that has more than it has delivered,
    /// as long as it [needs one](Self::needs_snapshot) or does not count in quorums yet. Others get
    /// what they lack by their logs, which have no gaps then.
    #[must_use]
    pub fn wants_snapshot(&self, cells: &[u64]) -> bool {
        let is_newer = cells.first().is_some_and(|place| *place > self.delivered);
        is_newer && !self.is_leader() && (self.needs_snapshot || !self.is_voter)
    }

    /// Goes on from a snapshot of another replica, whose application's state the caller has taken
    /// over. A snapshot that is [not wanted](Self::wants_snapshot) changes nothing, and neither do
    /// cells of another overlay.
    ///
    /// # Errors
    /// The memory does not fit.
    pub fn restore<M: Memory>(&mut self, cells: &[u64], memory: &M) -> Result<bool, Halt> {
        let Some((place, rest)) = cells.split_first() else { return Ok(false) };
        let Some((counts, replies)) = rest.split_at_checked(self.counts.cells()) else {
            return Ok(false);
        };
        let is_whole = replies.len() == self.replies.all().len();
        if !self.wants_snapshot(cells) || !is_whole {
            return Ok(false);
        }
        if self.counts.restore(counts).is_none() {
            return Ok(false);
        }
        // bound: the cells of replies
        for (to, from) in self.replies.all_mut().iter_mut().zip(replies) {
            *to = *from;
        }
        // The log stays as it is: it may be another's to write.
        let log = Log::new(memory.log(), self.shape);
        let stamp = log.control()?.stamp;
        log.set_begins(*place)?;
        self.delivered = *place;
        self.needs_snapshot = false;
        // Without children nobody needs what stands below.
        self.gapped = (!self.children.is_empty()).then_some(stamp);
        self.held = Held::default();
        // bound: the links
        for link in self.links.all() {
            self.show_all(link, memory)?;
        }
        Ok(true)
    }

    /// From which place on a leader replaces a peer's log below what the peer has delivered. Above
    /// `floor` the peer may lack entries that children need. Below it the peer's log may differ
    /// from the leader's: such entries were there before the peer took a snapshot, and were never
    /// decided. The peer would pass them on to children if it led.
    pub(super) fn lacking_from(
        &self,
        peer: Rank,
        floor: u64,
        delivered: u64,
        log: Log<'_>,
    ) -> Result<u64, Halt> {
        let entries = self.shape.entries();
        let mut place = log.begins()?.max(self.tail.saturating_sub(u64::from(entries)));
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

    /// Whether the own log has all that a peer lacks which has delivered up to a place. Entries
    /// below the own snapshot do not count, since they may never have been decided.
    pub(super) fn has_from(&self, delivered: u64, log: Log<'_>) -> Result<bool, Halt> {
        Ok(delivered >= log.begins()? && self.is_kept(delivered, log)?)
    }
}
