//! A ring: the slots of one sender in its row, read by every member.
//!
//! Requirements: FLT-2, MEM-1.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::line::{Line, OutOfRow};
use super::row::{Cell, OwnCell, Row, RowWriter};
use crate::check::{Checks, slot_check};
use crate::ids::{Position, Slot, index_from_u32};
use crate::layout::{RingShape, SLOT_HEADER, SLOT_HEADER_CHECKED};
use crate::smc::SlotLength;
use crate::sync::between_accesses;

impl<'m> Row<'m> {
    /// The ring of that shape.
    ///
    /// # Errors
    /// If it does not lie inside the row, or its slots do not hold what the shape says.
    pub fn ring(&self, shape: &RingShape) -> Result<Ring<'m>, OutOfRow> {
        self.ring_at(&RingPlace::new(shape)?)
    }

    /// The ring at a place that was checked before: one comparison is left.
    ///
    /// # Errors
    /// If it does not lie inside the row.
    #[inline]
    pub fn ring_at(&self, place: &RingPlace) -> Result<Ring<'m>, OutOfRow> {
        if place.end > self.bytes {
            return Err(OutOfRow);
        }
        let RingPlace { offset, stride, slots, capacity, checks, end: _ } = *place;
        // SAFETY: a place's end is not before its offset, and it is inside the row.
        let base = unsafe { self.base.add(offset) };
        Ok(Ring { base, stride, slots, capacity, checks, lent: PhantomData })
    }
}

impl<'m> RowWriter<'m> {
    /// The ring of that shape, to be filled.
    ///
    /// # Errors
    /// As [`Row::ring`].
    pub fn ring(&self, shape: &RingShape) -> Result<OwnRing<'m>, OutOfRow> {
        self.ring_at(&RingPlace::new(shape)?)
    }

    /// The ring at a place that was checked before.
    ///
    /// # Errors
    /// As [`Row::ring_at`].
    #[inline]
    pub fn ring_at(&self, place: &RingPlace) -> Result<OwnRing<'m>, OutOfRow> {
        Ok(OwnRing { ring: self.row.ring_at(place)? })
    }
}

/// Where a ring lies in a row, checked once: its slots hold what they should, are aligned, and end
/// where it says. What is left to compare is the end with the row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RingPlace {
    offset: usize,
    stride: usize,
    slots: u32,
    capacity: u32,
    checks: Checks,
    end: usize,
}

impl RingPlace {
    /// A place to be filled later: a ring without slots, at which every payload is empty.
    pub const VACANT: Self =
        Self { offset: 0, stride: 0, slots: 0, capacity: 0, checks: Checks::Off, end: usize::MAX };

    /// The place of a ring of that shape.
    ///
    /// # Errors
    /// If the slots do not hold what the shape says, are not aligned, or cannot be addressed.
    pub fn new(shape: &RingShape) -> Result<Self, OutOfRow> {
        let RingShape { offset, stride, slots, capacity, checks } = *shape;
        let header = if checks.is_on() { SLOT_HEADER_CHECKED } else { SLOT_HEADER };
        let needed = index_from_u32(capacity).checked_add(header).ok_or(OutOfRow)?;
        let bytes = stride.checked_mul(index_from_u32(slots)).ok_or(OutOfRow)?;
        let end = offset.checked_add(bytes).ok_or(OutOfRow)?;
        if slots == 0 || stride < needed {
            return Err(OutOfRow);
        }
        if !offset.is_multiple_of(8) || !stride.is_multiple_of(8) {
            return Err(OutOfRow);
        }
        Ok(Self { offset, stride, slots, capacity, checks, end })
    }

    /// Bytes from the start of the row.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

// SAFETY: a ring is a part of its row.
unsafe impl Send for Ring<'_> {}
// SAFETY: as above.
unsafe impl Sync for Ring<'_> {}

/// A sender's ring, to be read.
///
/// A slot is payload, padding, a length of 4 bytes, and the counter of 8 at its very end (SMC-6);
/// with checks, 24 bytes before its end, the check of payload, length and position.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'m> {
    pub(super) base: NonNull<u8>,
    pub(super) stride: usize,
    slots: u32,
    pub(super) capacity: u32,
    checks: Checks,
    lent: PhantomData<&'m [Line]>,
}

impl<'m> Ring<'m> {
    /// How many slots.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// The largest payload, in bytes.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The counter of a slot.
    #[inline]
    #[must_use]
    pub fn counter(&self, slot: Slot) -> Cell<'m> {
        let offset = self.slot_end(slot).wrapping_sub(8);
        // SAFETY: a slot's last 8 bytes; `RingPlace` and `Row::ring_at` hold the whole ring in the
        // row and its strides and start on multiples of 8; rule 1.
        Cell(unsafe { self.base.add(offset).cast::<AtomicU64>().as_ref() })
    }

    /// What a slot's counter says; nothing if it fails its check.
    #[inline]
    #[must_use]
    pub(crate) fn read_counter(&self, slot: Slot) -> Option<u64> {
        self.checks.unseal(self.counter(slot).load())
    }

    /// Whether a slot passes its check, if it has one: its payload, the length that stands in it,
    /// and that they were built for that position.
    #[inline]
    #[must_use]
    pub(crate) fn is_intact(&self, slot: Slot, position: Position, length: u32) -> bool {
        match self.checks {
            Checks::Off => true,
            Checks::On => {
                let stands = self.check_cell(slot).load(Ordering::Relaxed);
                stands == self.check_of(slot, position, length)
            }
        }
    }

    #[inline(always)]
    fn check_of(&self, slot: Slot, position: Position, length: u32) -> u64 {
        let bytes = SlotLength::decode(length).bytes();
        slot_check(position, length, self.payload(slot, bytes))
    }

    /// The length that stands in a slot, as its owner wrote it: not to be trusted before it is
    /// compared with the capacity.
    #[inline]
    #[must_use]
    pub(crate) fn length(&self, slot: Slot) -> u32 {
        between_accesses();
        self.length_cell(slot).load(Ordering::Relaxed)
    }

    /// The payload of a slot, cut to the capacity if `length` is above it.
    ///
    /// Read it only between the counter that announced it and the delivered frontier that frees it
    /// (rule 2).
    #[inline]
    #[must_use]
    pub(crate) fn payload(&self, slot: Slot, length: u32) -> &'m [u8] {
        let start = self.slot_end(slot).wrapping_sub(self.stride);
        let length = index_from_u32(length.min(self.capacity));
        // SAFETY: the payload lies at the start of a slot of the ring and is at most the capacity
        // long; it is not written while it is lent, by rule 2.
        unsafe { NonNull::slice_from_raw_parts(self.base.add(start), length).as_ref() }
    }

    fn length_cell(&self, slot: Slot) -> &'m AtomicU32 {
        let offset = self.slot_end(slot).wrapping_sub(SLOT_HEADER);
        // SAFETY: 12 bytes before a slot's end, on a multiple of 4, inside the ring as above;
        // touched only atomically.
        unsafe { self.base.add(offset).cast::<AtomicU32>().as_ref() }
    }

    /// Where a slot's check stands; only with checks.
    fn check_cell(&self, slot: Slot) -> &'m AtomicU64 {
        let offset = self.slot_end(slot).wrapping_sub(SLOT_HEADER_CHECKED);
        // SAFETY: with checks a stride holds the header of 24 bytes, by `RingPlace`; on a multiple
        // of 8, inside the ring as above; touched only atomically.
        unsafe { self.base.add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// Bytes from the ring's start to the end of a slot; a slot out of range counts as the first.
    ///
    /// Cannot wrap: `RingPlace` showed `stride * slots` to lie in the row.
    #[inline(always)]
    pub(super) fn slot_end(&self, slot: Slot) -> usize {
        let slot = if slot.0 < self.slots { slot.0 } else { 0 };
        self.stride.wrapping_mul(index_from_u32(slot)).wrapping_add(self.stride)
    }
}

/// The node's own ring, to be filled.
#[derive(Clone, Copy, Debug)]
pub struct OwnRing<'m> {
    pub(super) ring: Ring<'m>,
}

impl<'m> OwnRing<'m> {
    /// The same ring, for reading.
    #[must_use]
    pub const fn reader(&self) -> Ring<'m> {
        self.ring
    }

    /// The counter of a slot, to be published.
    #[inline]
    #[must_use]
    pub fn counter(&self, slot: Slot) -> OwnCell<'m> {
        OwnCell(self.ring.counter(slot).0)
    }

    /// Publishes a slot's counter.
    #[inline]
    pub(crate) fn publish_counter(&self, slot: Slot, counter: u64) {
        self.counter(slot).publish(self.ring.checks.seal(counter));
    }

    /// What the own counter of a slot says.
    #[inline]
    pub(crate) fn own_counter(&self, slot: Slot) -> u64 {
        self.ring.checks.own(self.ring.counter(slot).load())
    }

    /// Writes what belongs to the payload that was built: its length, and its check where slots
    /// have one. Both are published with the counter.
    #[inline]
    pub(crate) fn finish(&self, slot: Slot, position: Position, length: u32) {
        self.ring.length_cell(slot).store(length, Ordering::Relaxed);
        if self.ring.checks.is_on() {
            let check = self.ring.check_of(slot, position, length);
            self.ring.check_cell(slot).store(check, Ordering::Relaxed);
        }
    }

    /// The payload of a slot, to be built; cut to the capacity if `length` is above it.
    ///
    /// For the holder of the slot's reservation alone: it is exclusive because a reservation is.
    #[inline]
    #[must_use]
    pub(crate) fn payload_mut(&self, slot: Slot, length: u32) -> &'m mut [u8] {
        let start = self.ring.slot_end(slot).wrapping_sub(self.ring.stride);
        let length = index_from_u32(length.min(self.ring.capacity));
        // SAFETY: in range as in `Ring::payload`; exclusive, since a position is reserved once (the
        // compare-and-swap in `smc::handoff`) and its slot is free of readers by rule 2.
        unsafe { NonNull::slice_from_raw_parts(self.ring.base.add(start), length).as_mut() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<const N: usize>() -> [Line; N] {
        [const { Line::new() }; N]
    }

    #[test]
    fn rings_that_do_not_fit_are_refused() {
        let memory = lines::<2>();
        let row = Row::from_lines(&memory);
        let good = RingShape { offset: 0, stride: 16, slots: 8, capacity: 4, checks: Checks::Off };
        assert!(row.ring(&good).is_ok());
        for bad in [
            RingShape { slots: 9, ..good },
            RingShape { slots: 0, ..good },
            RingShape { capacity: 5, ..good },
            RingShape { checks: Checks::On, ..good },
            RingShape { offset: 4, slots: 1, ..good },
            RingShape { stride: 20, slots: 1, ..good },
            RingShape { stride: usize::MAX, ..good },
        ] {
            assert!(row.ring(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_built_in_a_slot_is_read_from_it_and_nowhere_else() {
        let memory = lines::<4>();
        let writer = RowWriter::from_lines(&memory);
        let shape =
            RingShape { offset: 64, stride: 32, slots: 6, capacity: 20, checks: Checks::Off };
        let ring = writer.ring(&shape).expect("it fits");
        ring.payload_mut(Slot(5), 20).fill(0xaa);
        ring.finish(Slot(5), Position(5), 20);
        ring.counter(Slot(5)).publish(3);
        let reader = writer.reader().ring(&shape).expect("it fits");
        assert_eq!(reader.counter(Slot(5)).load(), 3);
        assert_eq!(reader.length(Slot(5)), 20);
        assert_eq!(reader.payload(Slot(5), 20), &[0xaa; 20]);
        assert_eq!(reader.counter(Slot(4)).load(), 0);
        assert_eq!(reader.payload(Slot(4), 20), &[0; 20]);
    }

    #[test]
    fn a_slot_or_length_out_of_range_is_brought_into_range() {
        let memory = lines::<1>();
        let row = Row::from_lines(&memory);
        let shape =
            RingShape { offset: 0, stride: 32, slots: 2, capacity: 20, checks: Checks::Off };
        let ring = row.ring(&shape).expect("it fits");
        assert_eq!(ring.payload(Slot(7), u32::MAX).len(), 20);
        assert_eq!(ring.counter(Slot(u32::MAX)).load(), 0);
    }

    #[test]
    fn a_ring_that_is_moved_to_a_thread_and_shared_by_two_reads_what_its_owner_built() {
        const SLOTS: u32 = 4;
        const MESSAGES: u32 = if cfg!(miri) { 20 } else { 300 };
        let memory = lines::<4>();
        let writer = RowWriter::from_lines(&memory);
        let shape =
            RingShape { offset: 0, stride: 64, slots: SLOTS, capacity: 32, checks: Checks::Off };
        let ring = writer.ring(&shape).expect("it fits");
        let taken = [AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0)];
        // Counted and not asserted there: a reader that ended would be waited for.
        let wrong = AtomicU32::new(0);
        let read = |ring: &Ring<'_>, taken: &AtomicU32| {
            for number in 0..MESSAGES {
                let slot = Slot(number % SLOTS);
                while ring.counter(slot).load() <= u64::from(number) {
                    std::thread::yield_now();
                }
                let length = ring.length(slot);
                let byte = number.to_le_bytes()[0];
                let payload = ring.payload(slot, length);
                if length != number % 33 || payload.iter().any(|&one| one != byte) {
                    wrong.fetch_add(1, Ordering::Relaxed);
                }
                taken.store(number + 1, Ordering::Release);
            }
        };
        let (moved, shared) = (ring.reader(), ring.reader());
        std::thread::scope(|threads| {
            let shared = &shared;
            let (read, taken) = (&read, &taken);
            threads.spawn(move || read(shared, &taken[0]));
            threads.spawn(move || read(shared, &taken[1]));
            threads.spawn(move || read(&moved, &taken[2]));
            for number in 0..MESSAGES {
                let slot = Slot(number % SLOTS);
                // A slot is used again once all readers are past it.
                while taken.iter().any(|one| one.load(Ordering::Acquire) + SLOTS <= number) {
                    std::thread::yield_now();
                }
                let length = number % 33;
                ring.payload_mut(slot, length).fill(number.to_le_bytes()[0]);
                ring.finish(slot, Position(u64::from(number)), length);
                ring.counter(slot).publish(u64::from(number) + 1);
            }
        });
        assert_eq!(wrong.load(Ordering::Relaxed), 0);
    }
}
