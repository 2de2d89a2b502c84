//! A walk over the slots of a ring, in order. It keeps the address of the present slot, so an
//! access neither compares the slot with the number of slots nor multiplies it by their distance.
//!
//! # Invariants
//! - The address is that of the walk's slot, which is below the number of slots.
//!
//! Requirements: MEM-1, SMC-6.

use core::ptr::NonNull;

use super::ring::{OwnRing, Ring};
use crate::ids::Slot;

/// A slot of a ring, for reading, which advances to the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingWalk<'m> {
    /// The slot as a ring of one slot.
    here: Ring<'m>,
    /// Address of the ring's first slot.
    first: NonNull<u8>,
    slots: u32,
    slot: Slot,
}

/// A slot of the node's own ring, which advances to the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnWalk<'m>(RingWalk<'m>);

impl<'m> Ring<'m> {
    /// Returns a walk that begins at a slot. A slot that is out of range counts as the first.
    #[inline(always)]
    pub(crate) fn walk(&self, slot: Slot) -> RingWalk<'m> {
        let slot = if slot.0 < self.slots { slot } else { Slot::ZERO };
        let start = self.slot_end(slot).wrapping_sub(self.stride);
        // SAFETY: the slot starts inside the ring, as in `Ring::counter`.
        let base = unsafe { self.base.add(start) };
        let here = Ring { base, slots: 1, ..*self };
        RingWalk { here, first: self.base, slots: self.slots, slot }
    }
}

impl<'m> OwnRing<'m> {
    /// Returns a walk that begins at a slot. A slot that is out of range counts as the first.
    #[inline(always)]
    pub(crate) fn walk(&self, slot: Slot) -> OwnWalk<'m> {
        OwnWalk(self.ring.walk(slot))
    }
}

impl<'m> RingWalk<'m> {
    /// Returns the present slot as a ring of one slot.
    #[inline(always)]
    pub(crate) const fn here(&self) -> Ring<'m> {
        self.here
    }

    /// Returns the number of the present slot.
    #[inline(always)]
    pub(crate) const fn slot(&self) -> Slot {
        self.slot
    }

    /// Advances to the next slot, which is the first one after the last.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        let next = self.slot.0.wrapping_add(1);
        if next < self.slots {
            // SAFETY: the next slot is inside the ring, one stride further.
            self.here.base = unsafe { self.here.base.add(self.here.stride) };
            self.slot = Slot(next);
        } else {
            self.here.base = self.first;
            self.slot = Slot::ZERO;
        }
    }
}

impl<'m> OwnWalk<'m> {
    /// Returns the present slot as a ring of one slot.
    #[inline(always)]
    pub(crate) const fn here(&self) -> OwnRing<'m> {
        OwnRing { ring: self.0.here() }
    }

    /// Returns the number of the present slot.
    #[inline(always)]
    pub(crate) const fn slot(&self) -> Slot {
        self.0.slot()
    }

    /// Advances to the next slot, which is the first one after the last.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        self.0.advance();
    }
}

/// The number of the only slot of [`RingWalk::here`].
pub(crate) const HERE: Slot = Slot::ZERO;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Checks;
    use crate::ids::{Position, index_from_u32};
    use crate::layout::RingShape;
    use crate::memory::{Line, RowWriter};

    #[test]
    fn walk_visits_every_slot_in_order() {
        let memory = [const { Line::new() }; 4];
        let writer = RowWriter::from_lines(&memory);
        let shape =
            RingShape { offset: 64, stride: 32, slots: 3, capacity: 20, checks: Checks::Off };
        let ring = writer.ring(&shape).expect("it fits");
        for first in [0, 1, 2, 3, u32::MAX] {
            let (mut own, mut walk) = (ring.walk(Slot(first)), ring.reader().walk(Slot(first)));
            let first = if first < 3 { first } else { 0 };
            for slot in (first..first + 8).map(|slot| Slot(slot % 3)) {
                assert_eq!((own.slot(), walk.slot()), (slot, slot));
                let length = 5 + slot.0;
                let byte = slot.0.to_le_bytes()[0];
                own.here().payload_mut(HERE, length).fill(byte);
                own.here().finish(HERE, Position(7), length);
                own.here().publish_counter(HERE, u64::from(slot.0) + 1);
                let here = walk.here();
                assert_eq!(here.counter(HERE).load(), ring.reader().counter(slot).load());
                assert_eq!(here.length(HERE), ring.reader().length(slot));
                let payload = vec![byte; index_from_u32(length)];
                assert_eq!(here.payload(HERE, length), payload);
                assert_eq!(ring.reader().payload(slot, length), payload);
                own.advance();
                walk.advance();
            }
        }
    }
}
