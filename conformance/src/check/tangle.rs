//! The messages that could not be popped by the end of the history, because their delivery orders
//! contradict each other. If there are none, no order across nodes is broken.
//!
//! Invariants: every message in the tangle is in a cycle or follows one; a log has the order in
//! which its incarnation delivered; the positions of an item are sorted by log.

use super::groups::{GroupId, Groups};
use super::integrity::Naming;
use super::ledger::Ledger;
use super::message::HeldMessage;
use super::mixing::MixedTable;
use super::roster::{Roster, StartId};

/// The deliveries of one incarnation in one order.
#[derive(Debug)]
pub(super) struct IncarnationOrder {
    /// The incarnation.
    pub(super) start: StartId,
    /// The items, in order.
    pub(super) items: Vec<u32>,
}

/// An item's log, and its position in that log.
pub(super) type TrailPlace = (u32, u32);

/// The messages that could not be popped.
#[derive(Debug)]
pub(super) struct Tangle<'a> {
    ledger: &'a Ledger,
    roster: &'a Roster,
    groups: &'a Groups,
    /// Each incarnation's deliveries in each order.
    pub(super) logs: Vec<IncarnationOrder>,
    slots: Vec<u32>,
    /// The positions of all items, grouped by item.
    places: Vec<TrailPlace>,
    /// The index of each item's first position, followed by the end of the last item's positions.
    first_places: Vec<u32>,
}

impl<'a> Tangle<'a> {
    /// Collects the messages that are in the queues after the last sweep.
    pub(super) fn new(ledger: &'a Ledger, roster: &'a Roster, groups: &'a Groups) -> Self {
        let (mut items, mut slots, mut logs): (
            MixedTable<u32, u32>,
            Vec<u32>,
            Vec<IncarnationOrder>,
        ) = (MixedTable::default(), Vec::new(), Vec::new());
        for queue in &ledger.queues.queues {
            let mut log = IncarnationOrder { start: queue.start, items: Vec::new() };
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

    /// Returns the number of messages.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the positions of an item.
    pub(super) fn places(&self, item: u32) -> &[TrailPlace] {
        let [first, end] = [item, item + 1].map(|item| self.first_places[item as usize] as usize);
        &self.places[first..end]
    }

    /// Returns the item's position in a log.
    pub(super) fn place_in(&self, item: u32, log: u32) -> Option<u32> {
        let places = self.places(item);
        places.binary_search_by_key(&log, |(log, _)| *log).ok().map(|found| places[found].1)
    }

    /// Iterates over the groups of an item that promise an order.
    pub(super) fn ordered_groups(&self, item: u32) -> impl Iterator<Item = GroupId> {
        let sent = self.message(item).sent;
        let groups =
            sent.map(|sent| &self.groups.of(sent.groups).groups).into_iter().flatten().copied();
        groups.filter(|group| self.groups.groups[group.index()].order.is_ordered())
    }

    /// Returns whether a log belongs to a member of the group.
    pub(super) fn is_of_member(&self, log: u32, group: GroupId) -> bool {
        self.groups.has_member(group, self.roster.node_of(self.logs[log as usize].start))
    }

    /// Returns an item's name.
    pub(super) fn name(&self, item: u32) -> String {
        self.ledger.names.text(self.message(item).name)
    }

    /// Returns the display name of a log's incarnation.
    pub(super) fn called(&self, log: u32) -> String {
        self.roster.called(self.logs[log as usize].start)
    }

    /// Returns the line at which a log's incarnation delivered an item, or 0 if the line was
    /// forgotten.
    pub(super) fn line(&self, item: u32, log: u32) -> u64 {
        self.message(item)
            .first_by(self.logs[log as usize].start)
            .map_or(0, |delivery| delivery.line)
    }

    /// Returns the tables that name a group.
    pub(super) fn naming(&self) -> Naming<'_> {
        Naming { roster: self.roster, groups: self.groups, names: &self.ledger.names }
    }

    fn message(&self, item: u32) -> &HeldMessage {
        &self.ledger.slots[self.slots[item as usize] as usize]
    }
}

/// Returns the positions of all items grouped by item, and the index of each item's first.
fn places(logs: &[IncarnationOrder], items: usize) -> (Vec<TrailPlace>, Vec<u32>) {
    let mut first = vec![0_u32; items + 1];
    for item in logs.iter().flat_map(|log| &log.items) {
        first[*item as usize + 1] += 1;
    }
    for item in 0..items {
        first[item + 1] += first[item];
    }
    let mut next = first.clone();
    let mut places = vec![(0, 0); first[items] as usize];
    for (log, IncarnationOrder { items, .. }) in logs.iter().enumerate() {
        for (place, item) in items.iter().enumerate() {
            let at = &mut next[*item as usize];
            places[*at as usize] = (log as u32, place as u32);
            *at += 1;
        }
    }
    (places, first)
}
