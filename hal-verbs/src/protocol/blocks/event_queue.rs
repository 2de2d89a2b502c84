//! Block events that have not been polled, and reservations for those still to come.

use std::collections::VecDeque;

use tramontane_core::fabric::{BlockEvent, Channel, Token, Way};
use tramontane_core::ids::{Rank, ViewId};

/// Maximum number of blocks and receives that are in flight, or complete but not polled, over all
/// channels. It allows several for each channel.
const EVENTS_MAX: usize = 8192;

/// Events, and the number of those that may still come.
#[derive(Debug)]
pub(crate) struct EventQueue {
    view: ViewId,
    events: VecDeque<BlockEvent>,
    under_way: usize,
}

impl EventQueue {
    pub(crate) fn new(view: ViewId) -> Self {
        Self { view, events: VecDeque::with_capacity(EVENTS_MAX), under_way: 0 }
    }

    /// Returns whether there is room for the event of one more block or receive.
    pub(crate) fn has_place(&self) -> bool {
        self.events.len() + self.under_way < EVENTS_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn next(&mut self) -> Option<BlockEvent> {
        self.events.pop_front()
    }

    /// Reserves room for the event of a block or receive.
    pub(super) const fn begin(&mut self) {
        self.under_way += 1;
    }

    /// Releases the reservations of `count` events that will not come.
    pub(super) const fn give_up(&mut self, count: usize) {
        self.under_way -= count;
    }

    pub(super) fn sent(&mut self, channel: Channel, peer: Rank, token: Token) {
        self.under_way -= 1;
        self.events
            .push_back(BlockEvent::Sent { way: Way { view: self.view, channel, peer }, token });
    }

    pub(super) fn received(
        &mut self,
        (channel, peer): (Channel, Rank),
        token: Token,
        immediate: u32,
        length: usize,
    ) {
        self.under_way -= 1;
        let way = Way { view: self.view, channel, peer };
        self.events.push_back(BlockEvent::Received { way, token, immediate, length });
    }

    /// Returns the number of events that may still come.
    #[cfg(test)]
    pub(super) const fn under_way(&self) -> usize {
        self.under_way
    }

    /// Discards the events of some channels.
    pub(crate) fn forget(&mut self, is_over: impl Fn(&Way) -> bool) {
        self.events.retain(|event| {
            let (BlockEvent::Sent { way, .. } | BlockEvent::Received { way, .. }) = event;
            !is_over(way)
        });
    }
}
