//! The messages that a member passes on for its subgroup's only sender, and the slots that each
//! link then carries (REL-1).
//!
//! A member passes on slots from its copy of the sender's row to its peer's copy, in the step in
//! which it finds them. It does not wait for earlier slots, which come from other members. The peer
//! reads the copy as if the sender had written it: each slot says by its counter that its message
//! is here. Only slots are relayed. Frontiers and, with views, the columns still go from each
//! member to each other.
//!
//! # Invariants
//! - A slot is passed on only once its counter has shown its message, so its bytes are complete.
//!   With one sender, the message at a position has that round, so the counter is known beforehand.
//! - The bytes do not change until the write has landed: the sender reuses a slot once every member
//!   has delivered its message, and the peer delivers only what has landed there.
//! - In one view, all writes of a slot in a member's copy come from the same member. If that member
//!   is lost, the view changes, and the next view has trees without it (VIE-6, VIE-7).
//!
//! Requirement: REL-1.

use super::post::ShownRing;
use super::state::{Posted, SenderState};
use crate::fabric::{Kind, Region, Write};
use crate::ids::{Rank, Round, Slot};
use crate::layout::Stripes;
use crate::memory::Ring;
use crate::smc::{RingCursor, SlotCounter, SlotLength};

/// The segments of a ring.
#[derive(Clone, Copy, Debug)]
struct Segments {
    /// The number of slots in each, except for the last.
    slots: u32,
}

/// The relaying of one subgroup at one member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relay {
    segments: Segments,
    /// The stripes that this member passes on; at the sender, both.
    stripes: Stripes,
    /// Next slot to pass on. All earlier slots of the stripes are here.
    next: RingCursor,
    /// Number of changes of `next`. They are versions of the subgroup in which the control block
    /// has not changed.
    pub(super) moves: u64,
}

impl Relay {
    /// Creates the state of a member that has passed on nothing yet.
    pub(crate) const fn new(segment_slots: u32, stripes: Stripes) -> Self {
        let segments = Segments { slots: segment_slots };
        Self { segments, stripes, next: RingCursor::START, moves: 0 }
    }

    /// Looks for slots to pass on, at most a window. Returns whether there are any.
    pub(super) fn look(
        &mut self,
        ring: &Ring<'_>,
        sender: &SenderState,
        window: u32,
        observe: &impl Fn(),
    ) -> bool {
        let mut found = false;
        // bound: a window
        while let Some(room) = self.room(sender, window) {
            if !self.stripes.contains(self.segments.of(self.next.slot)) {
                let slots = self.segments.rest_from(self.next.slot, window).min(room);
                self.next = self.next.advanced(slots, window);
                continue;
            }
            if !self.is_here(ring) {
                break;
            }
            observe();
            let RingCursor { slot, position } = self.next;
            let length = ring.length(slot);
            // The receive stage judges such a slot.
            let is_wrong = SlotLength::decode(length).bytes() > ring.capacity();
            if is_wrong || !ring.is_intact(slot, position, length) {
                break;
            }
            self.next = self.next.next(window);
            found = true;
        }
        self.moves = self.moves.saturating_add(u64::from(found));
        found
    }

    /// Returns whether a look would find nothing.
    pub(super) fn is_quiet(&self, ring: &Ring<'_>, sender: &SenderState, window: u32) -> bool {
        self.room(sender, window).is_none()
            || self.stripes.contains(self.segments.of(self.next.slot)) && !self.is_here(ring)
    }

    /// Returns the number of slots that the sender can have used from the next one on, or `None` if
    /// there are none, or nothing is passed on. The sender is at most a window ahead of the
    /// messages delivered here.
    fn room(&self, sender: &SenderState, window: u32) -> Option<u32> {
        let ahead = u32::try_from(self.next.since(sender.hand)).unwrap_or(window);
        let room = window.saturating_sub(ahead);
        if room == 0 || self.stripes == Stripes::NONE { None } else { Some(room) }
    }

    /// Returns whether the next slot shows its message.
    fn is_here(&self, ring: &Ring<'_>) -> bool {
        let expected = SlotCounter::of_message(Round(self.next.position.0));
        ring.read_counter(self.next.slot) == Some(expected)
    }

    /// Returns the next slot to post: in the sender's ring the next to publish, `taken`, and
    /// otherwise the next to pass on.
    pub(super) const fn published(&self, is_own: bool, taken: RingCursor) -> RingCursor {
        if is_own { taken } else { self.next }
    }

    /// Returns the whole ring of a sender as this node posts it.
    pub(super) const fn part(&self, is_own: bool, sender: Rank) -> RingPart {
        let region = if is_own { Region::ROW } else { Region::copy_of(sender) };
        RingPart { region, segments: self.segments, stripes: Stripes::BOTH }
    }
}

impl Segments {
    /// Returns the segment of a slot.
    fn of(self, slot: Slot) -> u32 {
        slot.0.checked_div(self.slots).unwrap_or(0)
    }

    /// Returns the number of slots from a slot to the end of its segment.
    fn rest_from(self, slot: Slot, window: u32) -> u32 {
        let next = self.of(slot).saturating_add(1);
        next.saturating_mul(self.slots).min(window).saturating_sub(slot.0).max(1)
    }
}

/// The part of a ring with relays that a link carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingPart {
    /// The local row, or the copies of the sender's row.
    region: Region,
    segments: Segments,
    stripes: Stripes,
}

impl RingPart {
    /// Returns the part for a link that carries these stripes, or `None` if it carries none.
    pub(super) fn limited_to(self, stripes: Stripes) -> Option<Self> {
        (stripes != Stripes::NONE).then_some(Self { stripes, ..self })
    }
}

impl ShownRing<'_> {
    /// Returns the maximum number of slots of a run from a slot: those up to the end of the segment
    /// or, if the link carries all segments, of the ring.
    pub(super) fn run_max(&self, window: u32, from: Slot) -> u32 {
        match &self.part {
            Some(part) if part.stripes != Stripes::BOTH => part.segments.rest_from(from, window),
            Some(_) | None => window.saturating_sub(from.0),
        }
    }

    /// Returns a write of a range of the ring's row.
    pub(super) const fn write(&self, offset: usize, length: usize, kind: Kind) -> Write {
        let region = match &self.part {
            Some(part) => part.region,
            None => Region::ROW,
        };
        Write::within(region, offset, length, kind)
    }
}

impl Posted {
    /// Passes over the published slots of the next segment if the link does not carry it, and
    /// returns whether it does not.
    pub(super) fn pass_over(&mut self, ring: &ShownRing<'_>, window: u32) -> bool {
        let slot = self.content.slot;
        let Some(part) = &ring.part else { return false };
        if part.stripes.contains(part.segments.of(slot)) {
            return false;
        }
        let slots = part.segments.rest_from(slot, window);
        let published = u32::try_from(ring.published.since(self.content)).unwrap_or(slots);
        self.content = self.content.advanced(slots.min(published), window);
        self.counters = self.content;
        true
    }
}
