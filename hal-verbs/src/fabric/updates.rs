//! Rows on devices that keep no order between writes: each list ends with an update, which this
//! member applies to its copy of the sender's row when the update's receive completes.
//!
//! # Guarantees
//! - *Order between writes*: a guard is seen only after everything that was posted before it, and
//!   guards are seen in the order in which they were posted. The same holds for contents in an
//!   update. A long content may be seen before earlier posts, like any content that is read late,
//!   but it is never seen to revert.
//! - *Order within a write* and *visible upon completion* do not hold: a completion says that the
//!   update has arrived, not that it has been applied.
//! - *A member that does not poll sees nothing.* Updates are applied wherever completions are
//!   processed: by `poll` before it reports that nothing happened, by `arm` before it allows this
//!   member to sleep, and during sleep. A node polls in each step, and checks once more after it
//!   has armed.
//! - A member that processes nothing receives no more than its receives hold; further posts to it
//!   are refused as for a full queue.

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::Rank;

use super::{Loss, PeerStage, Verbs};
use crate::adapter::{BATCH, Completion};
use crate::protocol::Name;
use crate::protocol::update::{UPDATE_BYTES_MAX, Update, UpdateRecord};
use tramontane_core::memory::RowWriter;

impl Verbs {
    /// Applies an update that has arrived.
    #[inline(never)]
    pub(super) fn take_update(&mut self, name: Name, rank: Rank, completion: &Completion) {
        self.counters.updates_taken += 1;
        let mut bytes = [0; UPDATE_BYTES_MAX];
        let link = &self.links[name.link()];
        let update = link.read_update(name, completion.bytes, &mut bytes).and_then(Update::decode);
        let is_applied = update.as_ref().is_some_and(|update| match update.region {
            None => self.apply_to_copies(update, rank),
            Some(target) => self.apply_to_region(update, rank, target),
        });
        if let Some(target) = update.as_ref().and_then(|update| update.region) {
            self.refuse_ended_right(rank, target);
        }
        let Some(update) = update.filter(|_| is_applied) else {
            return self.lose(rank, Loss::of(LossCause::Misbehaved));
        };
        let link = &mut self.links[name.link()];
        if link.repost(name).is_err() {
            return self.lose(rank, Loss::of(LossCause::Unreachable));
        }
        if !link.took_update(update.taken, update.asks) {
            return self.lose(rank, Loss::of(LossCause::Misbehaved));
        }
        let taken_there = link.taken_there();
        self.complete_region_lists(rank, taken_there);
        let peer = &mut self.peers[rank.index()];
        if std::mem::take(&mut peer.refused) {
            self.retry_due = true;
        }
        self.send_credit(name.link());
    }

    /// Applies an update to the copy of its sender's row, and to copies of rows whose messages the
    /// sender passes on. Returns false if no correct member sends the update.
    fn apply_to_copies(&self, update: &Update<'_>, rank: Rank) -> bool {
        update.records().all(|UpdateRecord { owner, offset, bytes }| {
            let is_allowed =
                owner.is_none_or(|owner| self.builder.is_relay(rank, owner, offset, bytes.len()));
            let copy = self.builder.rows().copy(owner.unwrap_or(rank)).filter(|_| is_allowed);
            copy.is_some_and(|copy| copy.apply(offset, bytes).is_ok())
        })
    }

    /// Reports to a peer the number of updates processed, if it needs to know and there is room.
    pub(super) fn send_credit(&mut self, index: usize) {
        let Self { links, buffers, counters, peers, .. } = self;
        let link = &mut links[index];
        if peers[link.peer.index()].stage == PeerStage::Live
            && link.post_credit(buffers, counters).is_err()
        {
            self.fail_post(index);
        }
    }

    /// Continues after a full batch of completions, because more may be waiting. So a caller that
    /// polls until nothing happens has seen everything that had arrived by then. The number of
    /// updates is bounded by the number of receives.
    #[cold]
    pub(super) fn take_updates_that_came(&mut self) {
        for _ in 0..self.update_batches {
            if self.take_batch() < BATCH {
                return;
            }
        }
    }
}

/// Writes the records of an update to a region. Returns false if one is out of bounds, or is for a
/// row.
pub(super) fn write_records(update: &Update<'_>, into: RowWriter<'_>) -> bool {
    update.records().all(|UpdateRecord { owner, offset, bytes }| {
        owner.is_none() && into.apply(offset, bytes).is_ok()
    })
}
