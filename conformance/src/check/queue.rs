//! What starts delivered and the judge has not forgotten, in the order of delivery.
//!
//! Each start has a log of all that it delivered, and a queue for each order that messages may be
//! in ([`Lane`]). A delivery goes from the log to its queue when its multicast is known: only then
//! can it be told in which order it is.
//!
//! Invariants: what is in a queue was delivered before all that is in the log; revived messages
//! come before all others, by their places: they had been popped before any of those was;
//! `announced` is set only while the head is counted as heading this queue.

use std::collections::{BTreeMap, VecDeque};

use super::groups::Lane;
use super::mixing::Table;
use super::roster::StartId;

/// A message in a queue. If the slot's generation is another, the message is not held any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueEntry {
    /// The message's slot.
    pub(super) slot: u32,
    /// The slot's generation when it came in.
    pub(super) generation: u32,
}

/// A queue, by the order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct QueueId(pub(super) u32);

impl QueueId {
    /// Its place in tables by queue.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All logs and queues.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// What each start delivered and is in no queue yet, by start.
    pub(super) logs: Vec<VecDeque<QueueEntry>>,
    /// The queues, by id.
    pub(super) queues: Vec<Queue>,
    ids: Table<(StartId, Lane), QueueId>,
}

impl Queues {
    /// A start's queue for one order.
    pub(super) fn id(&mut self, start: StartId, lane: Lane) -> QueueId {
        let next = QueueId(u32::try_from(self.queues.len()).unwrap_or(u32::MAX));
        let id = *self.ids.entry((start, lane)).or_insert(next);
        if id == next {
            self.queues.push(Queue { start, ..Queue::default() });
        }
        id
    }

    /// The same, if it has ever had anything.
    pub(super) fn known(&self, start: StartId, lane: Lane) -> Option<QueueId> {
        self.ids.get(&(start, lane)).copied()
    }
}

/// One start's queue for one order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The start.
    pub(super) start: StartId,
    revived: BTreeMap<u64, QueueEntry>,
    entries: VecDeque<QueueEntry>,
    announced: bool,
    /// The highest place that was popped.
    pub(super) frontier: Option<u64>,
}

impl Queue {
    /// The start delivered something.
    pub(super) fn push(&mut self, entry: QueueEntry) {
        self.entries.push_back(entry);
    }

    /// Something that the start had delivered is held again. Gives the entry that does not head the
    /// queue any more, if it was announced.
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

    /// The first entry.
    pub(super) fn head(&self) -> Option<QueueEntry> {
        self.revived.values().next().or_else(|| self.entries.front()).copied()
    }

    /// Counts the head as heading this queue; says whether it was not counted before.
    pub(super) fn announce(&mut self) -> bool {
        !std::mem::replace(&mut self.announced, true)
    }

    /// Takes the first entry out.
    pub(super) fn pop(&mut self) {
        self.announced = false;
        if self.revived.pop_first().is_none() {
            self.entries.pop_front();
        }
    }

    /// All entries in order.
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
    fn what_is_revived_comes_first_and_by_its_place() {
        let mut queue = Queue::default();
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
