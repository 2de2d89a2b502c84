//! Events that the member has not polled yet.

use std::collections::VecDeque;

use tramontane_core::fabric::{BlockEvent, Channel, ErrorKind, Event};
use tramontane_core::ids::{Rank, ViewId};

use super::incoming::Notice;
use super::send_queue::Sent;

/// Events that may wait for a poll; beyond it, what would bring another is refused for now.
const EVENTS_MAX: usize = 1024;

/// Events that nobody has polled yet, oldest first.
#[derive(Debug)]
pub(super) struct EventQueue {
    events: VecDeque<Event>,
    blocks: VecDeque<BlockEvent>,
    /// A peer rang.
    is_rung: bool,
}

impl EventQueue {
    pub(super) fn new() -> Self {
        let events = VecDeque::with_capacity(EVENTS_MAX);
        // What is posted while there is room may bring more: then it grows, and stays as long.
        Self { events, blocks: VecDeque::with_capacity(EVENTS_MAX), is_rung: false }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Takes note of what a peer has taken.
    pub(super) fn sent(&mut self, sent: Sent) {
        match sent {
            Sent::List(token) => self.events.push_back(Event::Completed(token)),
            Sent::Block(way, token) => self.blocks.push_back(BlockEvent::Sent { way, token }),
        }
    }

    /// Takes note of what a peer sent, but for its last frame.
    pub(super) fn received(&mut self, notice: Notice) {
        match notice {
            Notice::Ready(view, peer) => self.events.push_back(Event::Ready { view, peer }),
            Notice::Rung => self.is_rung = true,
            Notice::Block(event) => self.blocks.push_back(event),
            Notice::Left | Notice::Denied => {}
        }
    }

    /// Whether a list with a token may be posted.
    pub(super) fn has_room(&self) -> bool {
        self.events.len() < EVENTS_MAX
    }

    /// Whether a block, or a receive for one, may be posted.
    pub(super) fn check_block_room(&self) -> Result<(), ErrorKind> {
        if self.blocks.len() < EVENTS_MAX { Ok(()) } else { Err(ErrorKind::QueueFull) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.has_no_event() && self.blocks.is_empty()
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
        }
        Some(event)
    }

    pub(super) fn next_block(&mut self) -> Option<BlockEvent> {
        self.blocks.pop_front()
    }

    /// Forgets the events of blocks of some channels and peers of a view.
    pub(super) fn forget_blocks(&mut self, view: ViewId, is_over: impl Fn(Channel, Rank) -> bool) {
        self.blocks.retain(|event| {
            let (BlockEvent::Sent { way, .. } | BlockEvent::Received { way, .. }) = event;
            way.view != view || !is_over(way.channel, way.peer)
        });
    }

    /// Forgets the events of a view. Its ranks are those of a list that may be followed by another,
    /// under the same view.
    pub(super) fn retire(&mut self, view: ViewId) {
        let is_of = |event: &Event| match event {
            Event::Ready { view: of, .. } | Event::PeerLost { view: of, .. } => *of == view,
            Event::Completed(_) | Event::Woken => false,
        };
        self.events.retain(|event| !is_of(event));
        self.forget_blocks(view, |_, _| true);
    }
}
