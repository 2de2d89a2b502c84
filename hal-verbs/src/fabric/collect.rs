//! Processing of completions: credits, tokens, notices and losses.

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::Rank;

use super::{Loss, PeerStage, Purpose, Verbs};
use crate::adapter::{BATCH, Completion, Operation};
use crate::protocol::{DueNotices, Heard, Name, Notice};
use crate::status::WorkStatus;

/// An upper bound on the number of batches that can fill all queues together.
const BATCHES_MAX: usize = 4096;

impl Verbs {
    /// Processes all waiting completions without reporting anything, which `poll` does. A polling
    /// thread does the same as part of its steps; this method is for tests, and for a member that
    /// waits.
    pub fn collect(&mut self) {
        for _ in 0..BATCHES_MAX {
            if self.take_batch() < BATCH {
                return;
            }
        }
    }

    /// Processes some completions and returns their number.
    pub(super) fn take_batch(&mut self) -> usize {
        if !self.commands.is_idle() {
            self.take_built();
        }
        let Some(completions) = &self.completions else { return 0 };
        let Ok(taken) = completions.take(&mut self.batch) else {
            self.lose_all(LossCause::Unreachable);
            return 0;
        };
        for index in 0..taken {
            let completion = self.batch[index];
            let name = Name::from_raw(completion.name);
            if name.is_receive() {
                self.take_receive(name, &completion);
            } else {
                self.take_send(name, &completion);
            }
        }
        if self.has_flushed && taken < BATCH {
            self.end_flushed();
        }
        taken
    }

    fn take_send(&mut self, name: Name, completion: &Completion) {
        let Some(link) = self.links.get_mut(name.link()) else { return };
        let is_probed = self.peers[link.peer.index()].stage.is_probed();
        self.counters.completions += u64::from(!is_probed);
        let number = name.number_from(link.queue.posted() - link.queue.in_flight());
        let status = WorkStatus::from_raw(completion.status);
        if status != WorkStatus::Success {
            // A completion from before a reset concerns nothing that is in flight.
            if number < link.queue.posted() {
                self.fail(name.link(), status, completion.vendor_error);
            }
            return;
        }
        if !link.queue.complete(number) {
            return;
        }
        if is_probed {
            let rank = link.peer;
            return self.probe_answered(rank);
        }
        let peer = &mut self.peers[link.peer.index()];
        if peer.refused {
            peer.refused = false;
            self.retry_due = true;
        }
        while let Some(token) = link.queue.next_done() {
            self.waiting -= 1;
            self.done.push_back(token);
        }
        let rank = link.peer;
        match link.purpose {
            Purpose::Row => self.send_notices(name.link()),
            Purpose::Region(_) => self.ring_for_done(name.link()),
            Purpose::Blocks => self.blocks_acknowledged(rank, name.link()),
        }
    }

    fn take_receive(&mut self, name: Name, completion: &Completion) {
        let Some(link) = self.links.get_mut(name.link()) else { return };
        let (rank, purpose) = (link.peer, link.purpose);
        if !self.peers[rank.index()].stage.is_heard() {
            return;
        }
        let status = WorkStatus::from_raw(completion.status);
        if status != WorkStatus::Success {
            // If the peer did something forbidden or left, there are only flushes.
            return self.fail(name.link(), status, completion.vendor_error);
        }
        match purpose {
            // Only updates arrive without an immediate value.
            Purpose::Row if self.goes_by_updates && completion.immediate.is_none() => {
                self.take_update(name, rank, completion);
            }
            Purpose::Row => self.take_notice(name, rank, completion.immediate),
            Purpose::Region(_) => {}
            Purpose::Blocks => self.take_block_message(name, rank, completion.bytes),
        }
    }

    fn take_notice(&mut self, name: Name, rank: Rank, immediate: Option<u32>) {
        self.counters.notices_taken += 1;
        let notice = immediate.and_then(Notice::decode);
        let Some(notice) = notice else { return self.lose(rank, Loss::of(LossCause::Misbehaved)) };
        if self.links[name.link()].repost(name).is_err() {
            return self.lose(rank, Loss::of(LossCause::Unreachable));
        }
        match notice {
            Notice::Asleep if !self.regions.is_empty() => self.ring_for_regions(rank),
            Notice::Reconnect { region, epoch } => self.reconnect_asked(rank, region, epoch),
            Notice::Reconnected { region, epoch } => self.reconnect_answered(rank, region, epoch),
            _ if !self.hear_of_key(rank, notice) => {
                return self.lose(rank, Loss::of(LossCause::Misbehaved));
            }
            _ => {}
        }
        match self.peers[rank.index()].doorbell.hear(notice, self.armed) {
            Heard::Nothing => {}
            Heard::Rung => self.rung = true,
            Heard::Retired => self.departed(rank),
            Heard::Broken(cause) => return self.lose(rank, Loss::of(cause)),
        }
        if let Some(row) = self.rows_to[rank.index()] {
            self.send_notices(row);
        }
    }

    /// Sends the notices that are due to a peer, as far as there is room.
    pub(super) fn send_notices(&mut self, index: usize) {
        let rank = self.links[index].peer;
        if self.peers[rank.index()].stage != PeerStage::Live {
            return;
        }
        let seen = self.peers[rank.index()].doorbell.seen();
        for (due, notice) in [
            (DueNotices::ASLEEP, Notice::Asleep),
            (DueNotices::RING, Notice::Ring),
            (DueNotices::WAKE, Notice::Wake),
            (DueNotices::WAKE_SEEN, Notice::WakeSeen(seen)),
            (DueNotices::RETIRED, Notice::Retired),
        ] {
            if self.peers[rank.index()].doorbell.due().contains(due) {
                if !self.send_notice(index, notice) {
                    return;
                }
                self.peers[rank.index()].doorbell.sent(due);
            }
        }
        self.send_reconnects(index, rank);
        self.send_credit(index);
    }

    /// Sends one notice. Returns `false` if there is no room now, or never will be.
    pub(super) fn send_notice(&mut self, index: usize, notice: Notice) -> bool {
        let Self { links, buffers, counters, .. } = self;
        let link = &mut links[index];
        if !link.queue.has_room_for_control() {
            return false;
        }
        let operation = |target| Operation::WriteWithImmediate(target, notice.encode());
        // The end of the view waits for the last notice.
        let is_last = notice == Notice::Retired;
        let posted = link.post_one(buffers, operation, None, None, is_last, counters);
        counters.notices_sent += 1;
        if posted.is_err() {
            self.fail_post(index);
        }
        posted.is_ok()
    }

    /// Requests a completion for everything in flight without one, if there is room.
    pub fn flush(&mut self) {
        for index in 0..self.links.len() {
            let Self { links, buffers, counters, .. } = self;
            let link = &mut links[index];
            if link.queue.unsignalled() == 0 || !link.queue.has_room_for_control() {
                continue;
            }
            if link.post_one(buffers, Operation::Write, None, None, true, counters).is_err() {
                self.fail_post(index);
            }
        }
    }
}
