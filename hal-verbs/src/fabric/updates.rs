//! Rows where devices keep no order between writes: each list ends with an update, which this
//! member applies to its copy of the sender's row when the update's receive completes.
//!
//! # What holds
//! - *Order between writes*: a guard is seen only after everything that was posted before it, and
//!   guards in the order in which they were posted. So are contents that went with an update. A
//!   long content may be seen before what was posted before it, as any content may that is read
//!   late; it is never seen to go back.
//! - Not *order within a write*, and not *visible upon completion*: a completion says that the
//!   update is here, and not that anybody applied it.
//! - *Who does not poll does not see.* Updates are applied wherever completions are taken: by
//!   `poll` before it says that nothing happened, by `arm` before it says that this member may
//!   sleep, and while it sleeps. A node polls in each step and looks once more after it armed.
//! - A member that takes nothing is sent no more than its receives hold; then posts to it are
//!   refused as a full queue is.

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::Rank;

use super::{Loss, Stage, Verbs};
use crate::adapter::{BATCH, Completion};
use crate::protocol::Name;
use crate::protocol::update::{UPDATE_BYTES_MAX, Update};

impl Verbs {
    /// Applies an update that came.
    #[inline(never)]
    pub(super) fn take_update(&mut self, name: Name, rank: Rank, completion: &Completion) {
        self.counters.updates_taken += 1;
        let mut bytes = [0; UPDATE_BYTES_MAX];
        let link = &self.links[name.link()];
        let update = link.read_update(name, completion.bytes, &mut bytes).and_then(Update::decode);
        let is_applied = update.as_ref().is_some_and(|update| {
            let Some(copy) = self.builder.rows().copy(rank) else { return false };
            let mut records = update.records();
            records.all(|(offset, bytes)| copy.apply(offset, bytes).is_ok())
        });
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
        let peer = &mut self.peers[rank.index()];
        if std::mem::take(&mut peer.refused) {
            self.retry_due = true;
        }
        self.send_credit(name.link());
    }

    /// Tells a peer how many updates were taken, if it must know and there is room.
    pub(super) fn send_credit(&mut self, index: usize) {
        let Self { links, buffers, counters, peers, .. } = self;
        let link = &mut links[index];
        if peers[link.peer.index()].stage == Stage::Live
            && link.post_credit(buffers, counters).is_err()
        {
            self.fail_post(index);
        }
    }

    /// Goes on where a whole batch of completions was taken and more may be there: whoever polls
    /// until nothing happens has seen what had come by then. No more than all receives hold.
    #[cold]
    pub(super) fn take_updates_that_came(&mut self) {
        for _ in 0..self.update_batches {
            if self.take_batch() < BATCH {
                return;
            }
        }
    }
}
