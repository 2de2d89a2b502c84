//! Sleep, and the descriptor that ends it, which is that of the completion channel.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Life, PeerStage, Verbs};
use crate::adapter::CompletionQueue;

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

impl Verbs {
    /// Returns whether there is anything that `poll` has not yet reported.
    fn has_news(&self) -> bool {
        !self.done.is_empty()
            || self.untold > 0
            || self.rung
            || self.blocks.has_news()
            || self.permissions.has_news()
    }

    pub(super) fn arm_for_sleep(&mut self) -> bool {
        // Rings that arrive before this member is armed are dropped, because it checks for work
        // once more after this.
        self.collect();
        if self.has_news() || std::mem::take(&mut self.retry_due) {
            return false;
        }
        self.armed = true;
        // The notification is requested before the check, so that nothing in between is missed.
        let Some(completions) = &self.completions else { return true };
        let notified = completions.notify();
        self.collect();
        if notified.is_err() || self.has_news() || self.retry_due {
            self.armed = false;
            return false;
        }
        if matches!(self.life, Life::Open(_)) {
            self.say_asleep();
        }
        true
    }

    /// Reports the sleep to all live peers that do not know it yet.
    fn say_asleep(&mut self) {
        for rank in 0..self.peers.len() {
            let Some(index) = self.rows_to[rank] else { continue };
            if self.peers[rank].stage == PeerStage::Live {
                self.peers[rank].doorbell.arm();
                self.send_notices(index);
            }
        }
    }

    /// Sleeps until a peer or the kernel has news, for at most `timeout`. Call it after a
    /// successful `arm` and one more check for work, and before `disarm`. Returns whether there is
    /// news.
    pub fn sleep(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        loop {
            if self.has_news() || std::mem::take(&mut self.retry_due) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if self.wait(left) {
                self.take_channel();
            } else if Instant::now() >= until {
                return false;
            }
        }
    }

    /// Waits until the channel is readable, for at most `timeout`. An interrupted wait ends early.
    fn wait(&self, timeout: Duration) -> bool {
        let completions = self.completions.as_ref();
        let mut descriptors = completions.map(|queue| PollFd::new(queue, PollFlags::IN));
        poll(descriptors.as_mut_slice(), Some(&timespec(timeout))).is_ok_and(|ready| ready > 0)
    }

    /// Reads the channel's events, processes their completions, and requests the next event.
    /// Notices are answered at this point, so a sleeping member stays asleep when a peer falls
    /// asleep too.
    fn take_channel(&mut self) {
        let Some(completions) = &self.completions else { return };
        while completions.take_event() {}
        if completions.notify().is_err() {
            self.lose_all(tramontane_core::fabric::LossCause::Unreachable);
        }
        self.collect();
    }

    /// Waits until a completion arrives, for at most `timeout`.
    pub(super) fn wait_for_completions(&mut self, timeout: Duration) {
        let Some(completions) = &self.completions else { return };
        if completions.notify().is_err() {
            return;
        }
        let before = self.in_flight();
        self.collect();
        if self.in_flight() != before {
            return;
        }
        self.wait(timeout);
        while self.completions.as_ref().is_some_and(CompletionQueue::take_event) {}
    }
}
