//! The deliveries that the judge has not forgotten, per incarnation and in delivery order.
//!
//! Each incarnation has a log of its deliveries, and a queue for each order that messages may
//! belong to ([`Lane`]). A delivery moves from the log to its queue when its multicast is known,
//! because the multicast decides to which order the message belongs.
//!
//! Invariants: everything in a queue was delivered before everything in the log; revived messages
//! come before all others, sorted by position, because they had been popped before any of the
//! others; `announced` is set only while the head is counted as heading this queue.

use std::collections::{BTreeMap, VecDeque};

use super::groups::Lane;
use super::mixing::MixedTable;
use super::roster::StartId;

/// A message in a queue. If the slot's generation has changed, the message is no longer held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueEntry {
    /// The message's slot.
    pub(super) slot: u32,
    /// The slot's generation when the message was queued.
    pub(super) generation: u32,
}

/// The id of a queue, in order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct QueueId(pub(super) u32);

impl QueueId {
    /// Returns the queue's index in tables by queue.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All logs and queues.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// The deliveries that are in no queue yet, by incarnation.
    pub(super) logs: Vec<VecDeque<QueueEntry>>,
    /// The queues, by id.
    pub(super) queues: Vec<OrderQueue>,
    ids: MixedTable<(StartId, Lane), QueueId>,
}

impl Queues {
    /// Returns the id of an incarnation's queue for one order, and creates the queue if needed.
    pub(super) fn id(&mut self, start: StartId, lane: Lane) -> QueueId {
        let next = QueueId(u32::try_from(self.queues.len()).unwrap_or(u32::MAX));
        let id = *self.ids.entry((start, lane)).or_insert(next);
        if id == next {
            self.queues.push(OrderQueue { start, ..OrderQueue::default() });
        }
        id
    }

    /// Returns the id of an incarnation's queue for one order, if the queue has been created.
    pub(super) fn known(&self, start: StartId, lane: Lane) -> Option<QueueId> {
        self.ids.get(&(start, lane)).copied()
    }
}

/// One incarnation's queue for one order.
#[derive(Debug, Default)]
pub(super) struct OrderQueue {
    /// The incarnation.
    pub(super) start: StartId,
    revived: BTreeMap<u64, QueueEntry>,
    entries: VecDeque<QueueEntry>,
    announced: bool,
    /// The highest position that was popped.
    pub(super) frontier: Option<u64>,
}

impl OrderQueue {
    /// Appends a delivery of the incarnation.
    pub(super) fn push(&mut self, entry: QueueEntry) {
        self.entries.push_back(entry);
    }

    /// Queues a revived message of the incarnation. Returns the entry that no longer heads the
    /// queue, if it was announced.
    pub(super) fn revive(&mut self, place: u64, entry: QueueEntry) -> Option<QueueEntry> {
        let head = self.head();
        self.revived.insert(place, entry);
        let displaced = self.head() != head && self.announced;
        if displaced {
            self.announced = false;
            return head;
        }
        None
    }

    /// Returns the first entry.
    pub(super) fn head(&self) -> Option<QueueEntry> {
        self.revived.values().next().or_else(|| self.entries.front()).copied()
    }

    /// Counts the head as heading this queue. Returns whether it had not been counted before.
    pub(super) fn announce(&mut self) -> bool {
        !std::mem::replace(&mut self.announced, true)
    }

    /// Removes the first entry.
    pub(super) fn pop(&mut self) {
        self.announced = false;
        if self.revived.pop_first().is_none() {
            self.entries.pop_front();
        }
    }

    /// Iterates over all entries in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = QueueEntry> {
        self.revived.values().chain(&self.entries).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(slot: u32) -> QueueEntry {
        QueueEntry { slot, generation: 0 }
    }

    #[test]
    fn revived_messages_are_queued_first_by_position() {
        let mut queue = OrderQueue::default();
        queue.push(entry(1));
        queue.push(entry(2));
        assert!(queue.announce() && !queue.announce());
        assert_eq!(queue.revive(9, entry(9)), Some(entry(1)));
        assert_eq!(queue.revive(7, entry(7)), None, "nothing was announced");
        assert!(queue.announce());
        assert_eq!(queue.revive(8, entry(8)), None, "the head is still the head");
        let mut order = Vec::new();
        while let Some(head) = queue.head() {
            order.push(head.slot);
            queue.pop();
        }
        assert_eq!(order, [7, 8, 9, 1, 2]);
    }
}
