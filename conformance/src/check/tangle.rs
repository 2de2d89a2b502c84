//! What could not be popped when the history was over: messages that somebody delivered in an order
//! that contradicts others'. If there are none, no order across nodes is broken.
//!
//! Invariants: every message in here is in at least one cycle or behind one; the order of a log is
//! the order in which its start delivered; places of an item are by log.

use super::groups::{GroupId, Groups};
use super::integrity::Naming;
use super::ledger::Ledger;
use super::message::Message;
use super::mixing::Table;
use super::roster::{Roster, StartId};

/// What one start delivered in one order.
#[derive(Debug)]
pub(super) struct Log {
    /// The start.
    pub(super) start: StartId,
    /// The items, in order.
    pub(super) items: Vec<u32>,
}

/// Where an item is: in which log, and at which place of it.
pub(super) type TrailPlace = (u32, u32);

/// The messages that could not be popped.
#[derive(Debug)]
pub(super) struct Tangle<'a> {
    ledger: &'a Ledger,
    roster: &'a Roster,
    groups: &'a Groups,
    /// What each start delivered in each order.
    pub(super) logs: Vec<Log>,
    slots: Vec<u32>,
    /// The places of all items, one item's after another's.
    places: Vec<TrailPlace>,
    /// Where each item's places begin, and where the last one's end.
    first_places: Vec<u32>,
}

impl<'a> Tangle<'a> {
    /// Of what is in the queues after the last sweep.
    pub(super) fn new(ledger: &'a Ledger, roster: &'a Roster, groups: &'a Groups) -> Self {
        let (mut items, mut slots, mut logs): (Table<u32, u32>, Vec<u32>, Vec<Log>) =
            (Table::default(), Vec::new(), Vec::new());
        for queue in &ledger.queues.queues {
            let mut log = Log { start: queue.start, items: Vec::new() };
            for entry in queue.iter() {
                let message = &ledger.slots[entry.slot as usize];
                if message.generation == entry.generation && message.is_delivered_by(queue.start) {
                    let next = slots.len() as u32;
                    let item = *items.entry(entry.slot).or_insert(next);
                    if item == next {
                        slots.push(entry.slot);
                    }
                    log.items.push(item);
                }
            }
            if !log.items.is_empty() {
                logs.push(log);
            }
        }
        let (places, first_places) = places(&logs, slots.len());
        Self { ledger, roster, groups, logs, slots, places, first_places }
    }

    /// How many messages are in it.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Where an item is.
    pub(super) fn places(&self, item: u32) -> &[TrailPlace] {
        let [first, end] = [item, item + 1].map(|item| self.first_places[item as usize] as usize);
        &self.places[first..end]
    }

    /// The item's place in a log.
    pub(super) fn place_in(&self, item: u32, log: u32) -> Option<u32> {
        let places = self.places(item);
        places.binary_search_by_key(&log, |(log, _)| *log).ok().map(|found| places[found].1)
    }

    /// The groups that an item is for and that promise an order.
    pub(super) fn ordered_groups(&self, item: u32) -> impl Iterator<Item = GroupId> {
        let sent = self.message(item).sent;
        let groups =
            sent.map(|sent| &self.groups.of(sent.groups).groups).into_iter().flatten().copied();
        groups.filter(|group| self.groups.groups[group.index()].order.is_ordered())
    }

    /// Whether a log is of a start of a member.
    pub(super) fn is_of_member(&self, log: u32, group: GroupId) -> bool {
        self.groups.has_member(group, self.roster.node_of(self.logs[log as usize].start))
    }

    /// An item's name.
    pub(super) fn name(&self, item: u32) -> String {
        self.ledger.names.text(self.message(item).name)
    }

    /// How the start of a log is called.
    pub(super) fn called(&self, log: u32) -> String {
        self.roster.called(self.logs[log as usize].start)
    }

    /// The line by which a log's start delivered an item; 0 if it is not known any more.
    pub(super) fn line(&self, item: u32, log: u32) -> u64 {
        self.message(item)
            .first_by(self.logs[log as usize].start)
            .map_or(0, |delivery| delivery.line)
    }

    /// To name a group.
    pub(super) fn naming(&self) -> Naming<'_> {
        Naming { roster: self.roster, groups: self.groups, names: &self.ledger.names }
    }

    fn message(&self, item: u32) -> &Message {
        &self.ledger.slots[self.slots[item as usize] as usize]
    }
}

/// The places of all items by item, and where each item's begin.
fn places(logs: &[Log], items: usize) -> (Vec<TrailPlace>, Vec<u32>) {
    let mut first = vec![0_u32; items + 1];
    for item in logs.iter().flat_map(|log| &log.items) {
        first[*item as usize + 1] += 1;
    }
    for item in 0..items {
        first[item + 1] += first[item];
    }
    let mut next = first.clone();
    let mut places = vec![(0, 0); first[items] as usize];
    for (log, Log { items, .. }) in logs.iter().enumerate() {
        for (place, item) in items.iter().enumerate() {
            let at = &mut next[*item as usize];
            places[*at as usize] = (log as u32, place as u32);
            *at += 1;
        }
    }
    (places, first)
}
