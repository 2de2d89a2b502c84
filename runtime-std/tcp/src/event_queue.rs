//! Events that the member has not yet polled.

use std::collections::VecDeque;

use tramontane_core::fabric::{BlockEvent, Channel, ErrorKind, Event, PermissionEvent};
use tramontane_core::ids::{Rank, ViewId};

use super::notice::Notice;
use super::send_queue::Sent;

/// The maximum number of events waiting for a poll. Beyond it, operations that would add an event
/// are refused for now.
const EVENTS_MAX: usize = 1024;

/// Events that have not been polled yet, the oldest first.
#[derive(Debug)]
pub(super) struct EventQueue {
    events: VecDeque<Event>,
    blocks: VecDeque<BlockEvent>,
    permissions: VecDeque<PermissionEvent>,
    /// A peer rang.
    is_rung: bool,
}

impl EventQueue {
    pub(super) fn new() -> Self {
        let events = VecDeque::with_capacity(EVENTS_MAX);
        // Operations posted while there was room may add more events. The queue then grows, and
        // keeps its size.
        let blocks = VecDeque::with_capacity(EVENTS_MAX);
        Self { events, blocks, permissions: VecDeque::new(), is_rung: false }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Adds the event of a sent block.
    pub(super) fn sent(&mut self, Sent { way, token }: Sent) {
        self.blocks.push_back(BlockEvent::Sent { way, token });
    }

    /// Adds an event for a peer's message, if the member must learn of it.
    pub(super) fn received(&mut self, notice: Notice) {
        match notice {
            Notice::Ready(view, peer) => self.events.push_back(Event::Ready { view, peer }),
            Notice::Rung => self.is_rung = true,
            Notice::Block(event) => self.blocks.push_back(event),
            Notice::Completed(token) => self.events.push_back(Event::Completed(token)),
            Notice::Permission(event) => {
                // Only the latest event counts, so there are few events whatever a peer sends.
                self.permissions.retain(|other| *other != event);
                self.permissions.push_back(event);
            }
            Notice::Left | Notice::Denied | Notice::Asked(_) | Notice::Ended(_) => {}
        }
    }

    /// Returns whether a list with a token may be posted.
    pub(super) fn has_room(&self) -> bool {
        self.events.len() < EVENTS_MAX
    }

    /// Checks whether a block, or a receive for one, may be posted.
    pub(super) fn check_block_room(&self) -> Result<(), ErrorKind> {
        if self.blocks.len() < EVENTS_MAX { Ok(()) } else { Err(ErrorKind::QueueFull) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.has_no_event() && self.blocks.is_empty() && self.permissions.is_empty()
    }

    pub(super) fn has_no_permission(&self) -> bool {
        self.permissions.is_empty()
    }

    pub(super) fn has_no_event(&self) -> bool {
        self.events.is_empty() && !self.is_rung
    }

    pub(super) fn has_no_block(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<Event> {
        let Some(event) = self.events.pop_front() else {
            return std::mem::take(&mut self.is_rung).then_some(Event::Woken);
        };
        if let Event::PeerLost { view, peer, .. } = event {
            self.forget_blocks(view, |_, of| of == peer);
            self.permissions.retain(|event| place_of(event) != (view, peer));
        }
        Some(event)
    }

    pub(super) fn next_permission(&mut self) -> Option<PermissionEvent> {
        self.permissions.pop_front()
    }

    pub(super) fn next_block(&mut self) -> Option<BlockEvent> {
        self.blocks.pop_front()
    }

    /// Forgets the events about blocks for some channels and peers of a view.
    pub(super) fn forget_blocks(&mut self, view: ViewId, is_over: impl Fn(Channel, Rank) -> bool) {
        self.blocks.retain(|event| {
            let (BlockEvent::Sent { way, .. } | BlockEvent::Received { way, .. }) = event;
            way.view != view || !is_over(way.channel, way.peer)
        });
    }

    /// Forgets the events of a view. Its ranks belong to a list that may be replaced by another
    /// list under the same view id.
    pub(super) fn retire(&mut self, view: ViewId) {
        let is_of = |event: &Event| match event {
            Event::Ready { view: of, .. } | Event::PeerLost { view: of, .. } => *of == view,
            Event::Completed(_) | Event::Woken => false,
        };
        self.events.retain(|event| !is_of(event));
        self.permissions.retain(|event| place_of(event).0 != view);
        self.forget_blocks(view, |_, _| true);
    }
}

/// Returns the view and the peer of an event.
const fn place_of(event: &PermissionEvent) -> (ViewId, Rank) {
    match event {
        PermissionEvent::Denied { view, peer, .. }
        | PermissionEvent::Restored { view, peer, .. } => (*view, *peer),
    }
}

#[cfg(test)]
mod tests {
    use tramontane_core::fabric::Region;

    use super::*;

    #[test]
    fn only_last_permission_events_are_reported() {
        let (view, peer, region) = (ViewId(1), Rank(1), Region(1));
        let (denied, restored) = (
            PermissionEvent::Denied { view, peer, region },
            PermissionEvent::Restored { view, peer, region },
        );
        let mut events = EventQueue::new();
        for event in [restored, denied, restored, denied, restored] {
            events.received(Notice::Permission(event));
        }
        assert!(!events.has_no_permission() && !events.is_empty());
        let told: Vec<_> = std::iter::from_fn(|| events.next_permission()).collect();
        assert_eq!(told, [denied, restored]);
        // Nothing more is reported about a view that has ended, or about a peer after its loss.
        events.received(Notice::Permission(denied));
        events.retire(ViewId(2));
        assert!(!events.has_no_permission());
        events.retire(view);
        assert!(events.is_empty());
        events.received(Notice::Permission(denied));
        let cause = tramontane_core::fabric::LossCause::Left;
        events.push(Event::PeerLost { view, peer, cause });
        assert!(events.next().is_some() && events.has_no_permission());
    }
}
