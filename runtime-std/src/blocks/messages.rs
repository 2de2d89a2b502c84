//! A group's messages at one member: the buffer in flight, the staging block, and the recipient.

use std::collections::VecDeque;

use tramontane_core::fabric::{Area, Region};
use tramontane_core::rdmc::transfer::MessageMemory;

use super::recipient::Recipient;
use crate::block_transfer::buffer::{Buffer, place_block};

/// A message that is waiting to be sent.
pub(super) struct Outgoing {
    pub(super) buffer: Buffer,
    pub(super) bytes: usize,
}

/// One member's messages in one group.
pub(super) struct GroupMessages {
    recipient: Box<dyn Recipient>,
    /// The buffer for first blocks, or `None` at the root.
    staging: Option<Buffer>,
    /// The buffer from which blocks are sent, or into which they are received.
    under_way: Option<Buffer>,
    /// The messages that are waiting to be sent. Used only at the root.
    waiting: VecDeque<Outgoing>,
}

impl GroupMessages {
    pub(super) fn new(recipient: Box<dyn Recipient>, staging: Option<Buffer>) -> Self {
        Self { recipient, staging, under_way: None, waiting: VecDeque::new() }
    }

    pub(super) fn recipient(&mut self) -> &mut dyn Recipient {
        self.recipient.as_mut()
    }

    /// Returns the area for first blocks. The root has no such area, and posts no receive.
    pub(super) fn staging(&self) -> Area {
        self.staging.as_ref().map_or(Area { region: Region::ROW, offset: 0 }, Buffer::area)
    }

    pub(super) fn queue(&mut self, outgoing: Outgoing) {
        self.waiting.push_back(outgoing);
    }

    /// Takes the next message to be sent, and returns its area and its length.
    pub(super) fn take_up(&mut self) -> Option<(Area, usize)> {
        let Outgoing { buffer, bytes } = self.waiting.pop_front()?;
        let area = buffer.area();
        self.under_way = Some(buffer);
        Some((area, bytes))
    }
}

impl MessageMemory for GroupMessages {
    fn incoming(&mut self, number: u64, bytes: usize) -> Option<Area> {
        let buffer =
            self.recipient.incoming(number, bytes).filter(|buffer| buffer.len() >= bytes)?;
        let area = buffer.area();
        self.under_way = Some(buffer);
        Some(area)
    }

    fn place(&mut self, from: Area, to: Area, length: usize) {
        let (Some(staging), Some(message)) = (&self.staging, &mut self.under_way) else { return };
        place_block(staging, from.offset, message, to.offset, length);
    }

    fn completed(&mut self, number: u64, bytes: usize) {
        if let Some(buffer) = self.under_way.take() {
            self.recipient.completed(number, buffer, bytes);
        }
    }
}
