//! This node's own large messages in one subgroup, across all views.
//!
//! # Invariants
//! - The messages are in the order of their slots, because senders take a slot and queue the bytes
//!   under one lock.
//! - Bytes are kept until the message has been delivered everywhere, so that it can be resent if a
//!   view ends without it (RDM-7), and until none of its blocks is in flight.

use std::collections::VecDeque;

use tramontane_core::fabric::Area;
use tramontane_core::rdmc::transfer::MessageMemory;

use super::send_queue::{LargeSendQueueReader, QueuedBytes};
use crate::block_transfer::buffer::Buffer;
use crate::block_transfer::transfer::Transfer;

/// A large message of this node.
#[derive(Debug)]
struct OutboxEntry {
    /// The message's number, counted as in
    /// [`Ordinal`](crate::group::send::receipt::ordinal::Ordinal).
    ordinal: u64,
    buffer: Buffer,
    bytes: usize,
}

/// The large messages of this node that have not been delivered everywhere.
#[derive(Debug)]
pub(super) struct Outbox {
    reader: LargeSendQueueReader,
    entries: VecDeque<OutboxEntry>,
    /// The number of the first entry in this view.
    first: u64,
    /// The number of messages of this view that have been passed to the transfer, and the number
    /// that it has completed.
    begun: u64,
    through: u64,
    /// The ordinal of the current ring's first message.
    ring_first: u64,
}

impl Outbox {
    pub(super) fn new(reader: LargeSendQueueReader) -> Self {
        Self { reader, entries: VecDeque::new(), first: 0, begun: 0, through: 0, ring_first: 0 }
    }

    /// Fetches the messages that senders have queued.
    pub(super) fn receive_message(&mut self) -> bool {
        let before = self.entries.len();
        while let Some(QueuedBytes { ordinal, buffer, bytes }) = self.reader.take() {
            self.entries.push_back(OutboxEntry { ordinal, buffer, bytes });
        }
        self.entries.len() > before
    }

    /// Begins a view whose ring begins with message `ring_first`. Earlier messages have been
    /// delivered; the rest are sent from the start.
    pub(super) fn begin(&mut self, ring_first: u64) {
        self.receive_message();
        while self.entries.front().is_some_and(|entry| entry.ordinal < ring_first) {
            self.give_back_first();
        }
        (self.first, self.begun, self.through, self.ring_first) = (0, 0, 0, ring_first);
    }

    /// Passes the next message to the transfer.
    pub(super) fn submit(&mut self, transfer: &mut Transfer) -> bool {
        if transfer.is_moving() || transfer.outcome().is_some() {
            return false;
        }
        let index = usize::try_from(self.begun - self.first).unwrap_or(usize::MAX);
        let Some(entry) = self.entries.get_mut(index) else { return false };
        // The size was checked against the subgroup's limit before the message was queued.
        let is_sent = transfer.send(entry.buffer.area(), entry.bytes).is_ok();
        self.begun += u64::from(is_sent);
        is_sent
    }

    /// Returns message `number` of this view while it is still held.
    pub(super) fn get(&self, number: u64) -> Option<&[u8]> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let entry = self.entries.get(index)?;
        entry.buffer.get(..entry.bytes)
    }

    /// Releases the current ring's messages below `position`, which have been delivered everywhere.
    pub(super) fn delivered_everywhere(&mut self, position: u64) {
        let ordinal = self.ring_first.saturating_add(position);
        while self.first < self.through
            && self.entries.front().is_some_and(|entry| entry.ordinal < ordinal)
        {
            self.give_back_first();
            self.first += 1;
        }
    }

    fn give_back_first(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.reader.give_back(entry.buffer);
        }
    }

    /// Returns the bytes of a message that this node has not delivered by its end.
    pub(super) fn take(&mut self, ordinal: u64) -> Option<Vec<u8>> {
        self.receive_message();
        let entry = self.entries.iter().find(|entry| entry.ordinal == ordinal)?;
        entry.buffer.get(..entry.bytes).map(<[u8]>::to_vec)
    }

    /// Returns whether nothing is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// The root receives no blocks.
impl MessageMemory for Outbox {
    fn incoming(&mut self, _number: u64, _bytes: usize) -> Option<Area> {
        None
    }

    fn place(&mut self, _from: Area, _to: Area, _length: usize) {}

    fn completed(&mut self, _number: u64, _bytes: usize) {
        self.through += 1;
    }
}
