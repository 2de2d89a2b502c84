//! The effect of device events on the peers of a view.

use tramontane_core::fabric::LossCause;

use super::{Loss, Purpose, Verbs};
use crate::adapter::{CompletionQueue, QueuePairState};
use crate::site::DeviceNews;
use crate::status::WorkStatus;

impl Verbs {
    /// Handles the device's events ([`Site::check_device`]) that concern this view; the results are
    /// returned by `poll`. Returns whether a peer is newly lost or there is other news.
    ///
    /// [`Site::check_device`]: crate::Site::check_device
    pub fn hear_device(&mut self, news: &DeviceNews) -> bool {
        let before = self.untold;
        let queue = self.completions.as_ref().map(CompletionQueue::id);
        if news.has_failed() || queue.is_some_and(|id| news.names_completion_queue(id)) {
            // Earlier completions still count.
            self.collect();
            self.lose_all(LossCause::Unreachable);
        }
        for number in news.queue_pairs() {
            if let Some(index) = self.links.iter().position(|link| link.number() == Some(*number)) {
                self.collect();
                self.fail_queue_pair(index);
            }
        }
        self.untold != before
    }

    /// Handles the report of a failed queue pair. Completions say more. If they have arrived first,
    /// there is nothing left to do.
    fn fail_queue_pair(&mut self, index: usize) {
        // Some events arrive late: a connection that was re-established in the meantime works.
        let Some(link) = self.links.get(index).filter(|link| link.is_broken()) else { return };
        if let Purpose::Region(_) = link.purpose {
            return self.fail_region(index, WorkStatus::Flushed);
        }
        let (rank, queue_pair) = (link.peer, Some(QueuePairState::Error.name()));
        self.lose(rank, Loss { queue_pair, ..Loss::of(LossCause::Unreachable) });
    }
}
