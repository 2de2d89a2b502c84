//! Events of blocks until they are polled, and room for those that are still to come.

use std::collections::VecDeque;

use tramontane_core::fabric::{BlockEvent, Channel, Token, Way};
use tramontane_core::ids::{Rank, ViewId};

/// Blocks and receives under way or done and not polled, in all: several for each channel.
const EVENTS_MAX: usize = 8192;

/// Events, and how many more may come.
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

    /// Whether the event of one more block or receive will find a place.
    pub(crate) fn has_place(&self) -> bool {
        self.events.len() + self.under_way < EVENTS_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn next(&mut self) -> Option<BlockEvent> {
        self.events.pop_front()
    }

    /// A block or a receive is under way.
    pub(super) const fn begin(&mut self) {
        self.under_way += 1;
    }

    /// So many will have no event.
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

    /// How many more events may come.
    #[cfg(test)]
    pub(super) const fn under_way(&self) -> usize {
        self.under_way
    }

    /// Forgets the events of some ways.
    pub(crate) fn forget(&mut self, is_over: impl Fn(&Way) -> bool) {
        self.events.retain(|event| {
            let (BlockEvent::Sent { way, .. } | BlockEvent::Received { way, .. }) = event;
            !is_over(way)
        });
    }
}
