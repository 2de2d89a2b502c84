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
    /// Returns the ring with that shape.
    ///
    /// # Errors
    /// Fails if the ring is not inside the row or if its slots are too small for the shape.
    pub fn ring(&self, shape: &RingShape) -> Result<Ring<'m>, OutOfRow> {
        self.ring_at(&RingPlace::new(shape)?)
    }

    /// Returns the ring at a place that has been checked before, with a single comparison.
    ///
    /// # Errors
    /// Fails if the ring is not inside the row.
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
    /// Returns the ring with that shape, for filling.
    ///
    /// # Errors
    /// Fails as [`Row::ring`] does.
    pub fn ring(&self, shape: &RingShape) -> Result<OwnRing<'m>, OutOfRow> {
        self.ring_at(&RingPlace::new(shape)?)
    }

    /// Returns the ring at a place that has been checked before.
    ///
    /// # Errors
    /// Fails as [`Row::ring_at`] does.
    #[inline]
    pub fn ring_at(&self, place: &RingPlace) -> Result<OwnRing<'m>, OutOfRow> {
        Ok(OwnRing { ring: self.row.ring_at(place)? })
    }
}

/// Location of a ring in a row, checked once: its slots have the required size, are aligned, and
/// end at `end`. Only `end` remains to be compared with the size of the row.
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
    /// A place to be filled in later: a ring without slots, in which every payload is empty.
    pub const VACANT: Self =
        Self { offset: 0, stride: 0, slots: 0, capacity: 0, checks: Checks::Off, end: usize::MAX };

    /// Checks the shape of a ring and returns its place.
    ///
    /// # Errors
    /// Fails if the slots are too small for the shape, are not aligned, or cannot be addressed.
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

    /// Returns the ring's offset in bytes from the start of the row.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

// SAFETY: a ring is a part of its row.
unsafe impl Send for Ring<'_> {}
// SAFETY: as above.
unsafe impl Sync for Ring<'_> {}

/// A sender's ring, for reading.
///
/// A slot consists of padding, the payload, a length of 4 bytes, and the 8-byte counter at its very
/// end (SMC-6). With checks, the check of payload, length and position is 24 bytes before the end.
/// The payload begins at the last multiple of 8 from which it fits, so the bytes of a message are
/// one range, however large the slot is (SMC-7).
#[derive(Clone, Copy, Debug)]
pub struct Ring<'m> {
    pub(super) base: NonNull<u8>,
    pub(super) stride: usize,
    pub(super) slots: u32,
    pub(super) capacity: u32,
    pub(super) checks: Checks,
    pub(super) lent: PhantomData<&'m [Line]>,
}

impl<'m> Ring<'m> {
    /// Returns the number of slots.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the largest payload in bytes.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns whether the slots have checks.
    #[inline]
    pub(crate) const fn has_checks(&self) -> bool {
        self.checks.is_on()
    }

    /// Returns the counter of a slot.
    #[inline]
    #[must_use]
    pub fn counter(&self, slot: Slot) -> Cell<'m> {
        let offset = self.slot_end(slot).wrapping_sub(8);
        // SAFETY: the cell is a slot's last 8 bytes. `RingPlace` and `Row::ring_at` ensure that the
        // whole ring is in the row and that its start and stride are multiples of 8; rule 1.
        Cell(unsafe { self.base.add(offset).cast::<AtomicU64>().as_ref() })
    }

    /// Returns the value of a slot's counter, or `None` if it fails its check.
    #[inline]
    #[must_use]
    pub(crate) fn read_counter(&self, slot: Slot) -> Option<u64> {
        self.checks.unseal(self.counter(slot).load())
    }

    /// Returns whether a slot passes its check; true if slots have none. The check covers the
    /// payload, its stored length, and the position that they were built for.
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

    /// Returns the length stored in a slot by its owner. It must not be trusted before it is
    /// compared with the capacity.
    #[inline]
    #[must_use]
    pub(crate) fn length(&self, slot: Slot) -> u32 {
        between_accesses();
        self.length_cell(slot).load(Ordering::Relaxed)
    }

    /// Returns the payload of a slot, truncated to the capacity if `length` is above it.
    ///
    /// Read the payload only between the counter that announced it and the delivered frontier that
    /// frees it (rule 2).
    #[inline]
    #[must_use]
    pub(crate) fn payload(&self, slot: Slot, length: u32) -> &'m [u8] {
        let length = length.min(self.capacity);
        let start = self.slot_end(slot).wrapping_sub(self.extent(length));
        // SAFETY: the payload begins inside its slot, whose stride holds the capacity and the
        // header (`RingPlace`), and ends before the header; it is not written while it is lent, by
        // rule 2.
        unsafe {
            let payload = self.base.add(start);
            NonNull::slice_from_raw_parts(payload, index_from_u32(length)).as_ref()
        }
    }

    /// Returns the number of bytes from the start of a payload to the end of its slot. `length` is
    /// at most the capacity.
    ///
    /// The result cannot exceed the stride, which is a multiple of 8 and holds the capacity and the
    /// header (`RingPlace`).
    #[inline(always)]
    pub(super) fn extent(&self, length: u32) -> usize {
        let header = if self.checks.is_on() { SLOT_HEADER_CHECKED } else { SLOT_HEADER };
        index_from_u32(length).wrapping_add(header.wrapping_add(7)) & !7
    }

    /// Returns the number of bytes, up to the end of the slot, that the message in a slot takes:
    /// the part that peers need (SMC-7).
    #[inline]
    #[must_use]
    pub(crate) fn used(&self, slot: Slot) -> usize {
        self.extent(SlotLength::decode(self.length(slot)).bytes().min(self.capacity))
    }

    /// Returns the maximum padding, in bytes, that a slot can have.
    #[inline]
    #[must_use]
    pub(crate) fn padding_max(&self) -> usize {
        self.stride.saturating_sub(self.extent(0))
    }

    #[inline(always)]
    fn length_cell(&self, slot: Slot) -> &'m AtomicU32 {
        let offset = self.slot_end(slot).wrapping_sub(SLOT_HEADER);
        // SAFETY: the length is 12 bytes before a slot's end, aligned to 4, inside the ring as
        // above; it is accessed only atomically.
        unsafe { self.base.add(offset).cast::<AtomicU32>().as_ref() }
    }

    /// Returns the cell of a slot's check. Call it only if slots have checks.
    fn check_cell(&self, slot: Slot) -> &'m AtomicU64 {
        let offset = self.slot_end(slot).wrapping_sub(SLOT_HEADER_CHECKED);
        // SAFETY: with checks, a stride has room for the 24-byte header, by `RingPlace`; the cell
        // is aligned to 8, inside the ring as above; it is accessed only atomically.
        unsafe { self.base.add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// Returns the number of bytes from the start of the ring to the end of a slot. A slot that is
    /// out of range counts as the first.
    ///
    /// The sum cannot wrap: `RingPlace` checked that `stride * slots` fits in the row.
    #[inline(always)]
    pub(super) fn slot_end(&self, slot: Slot) -> usize {
        let slot = if slot.0 < self.slots { slot.0 } else { 0 };
        self.stride.wrapping_mul(index_from_u32(slot)).wrapping_add(self.stride)
    }
}

/// The node's own ring, which it fills.
#[derive(Clone, Copy, Debug)]
pub struct OwnRing<'m> {
    pub(super) ring: Ring<'m>,
}

impl<'m> OwnRing<'m> {
    /// Returns the same ring, for reading.
    #[must_use]
    pub const fn reader(&self) -> Ring<'m> {
        self.ring
    }

    /// Returns the counter of a slot, for publishing.
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

    /// Returns the value of a slot's counter in this node's own ring.
    #[inline]
    pub(crate) fn own_counter(&self, slot: Slot) -> u64 {
        self.ring.checks.own(self.ring.counter(slot).load())
    }

    /// Writes the length of the payload that has been built, and its check if slots have checks.
    /// Both are published with the counter.
    #[inline(always)]
    pub(crate) fn finish(&self, slot: Slot, position: Position, length: u32) {
        self.ring.length_cell(slot).store(length, Ordering::Relaxed);
        if self.ring.checks.is_on() {
            self.check(slot, position, length);
        }
    }

    /// Writes a slot's check. Not inlined, so that slots without checks need less code.
    #[cold]
    #[inline(never)]
    fn check(self, slot: Slot, position: Position, length: u32) {
        let check = self.ring.check_of(slot, position, length);
        self.ring.check_cell(slot).store(check, Ordering::Relaxed);
    }

    /// Returns the payload of a slot, to be built, truncated to the capacity if `length` is above
    /// it.
    ///
    /// Only the holder of the slot's reservation may call this: the slice is exclusive because a
    /// reservation is.
    #[inline(always)]
    #[must_use]
    pub(crate) fn payload_mut(&self, slot: Slot, length: u32) -> &'m mut [u8] {
        let length = length.min(self.ring.capacity);
        let start = self.ring.slot_end(slot).wrapping_sub(self.ring.extent(length));
        // SAFETY: the payload is inside its slot, as in `Ring::payload`; the slice is exclusive,
        // because a position is reserved only once (the compare-and-swap in `smc::handoff`) and its
        // slot has no readers by rule 2.
        unsafe {
            let payload = self.ring.base.add(start);
            NonNull::slice_from_raw_parts(payload, index_from_u32(length)).as_mut()
        }
    }

    /// Moves the first `to` bytes of a payload that was built with `from` bytes to the position of
    /// a payload of `to` bytes. Both lengths are limited to the capacity, and `to` to `from`.
    ///
    /// Only the holder of the slot's reservation may call this, as for [`OwnRing::payload_mut`].
    pub(crate) fn shorten(&self, slot: Slot, from: u32, to: u32) {
        let from = from.min(self.ring.capacity);
        let to = to.min(from);
        let end = self.ring.slot_end(slot);
        let [source, target] = [from, to].map(|length| end.wrapping_sub(self.ring.extent(length)));
        // SAFETY: both ranges are in the slot, as in `Ring::payload`, and may overlap; access is
        // exclusive, as in `payload_mut`.
        unsafe {
            let base = self.ring.base;
            base.add(source).copy_to(base.add(target), index_from_u32(to));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<const N: usize>() -> [Line; N] {
        [const { Line::new() }; N]
    }

    #[test]
    fn ring_exceeding_its_memory_is_refused() {
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
    fn payload_is_read_only_from_its_slot() {
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

    /// SMC-7: a message is one range at the end of its slot, even if it was shortened.
    #[test]
    fn message_occupies_one_range_at_slot_end() {
        for (checks, header) in [(Checks::Off, 12), (Checks::On, 24)] {
            let memory = lines::<16>();
            let writer = RowWriter::from_lines(&memory);
            let shape = RingShape { offset: 64, stride: 320, slots: 2, capacity: 290, checks };
            let ring = writer.ring(&shape).expect("it fits");
            let slot_end = 64 + 2 * 320;
            for length in 0..=290_u32 {
                for built in [length, 290] {
                    let bytes: Vec<u8> = (0..built).map(|at| at.to_le_bytes()[0]).collect();
                    ring.payload_mut(Slot(1), built).copy_from_slice(&bytes);
                    ring.shorten(Slot(1), built, length);
                    ring.finish(Slot(1), Position(1), length);
                    let end = index_from_u32(length);
                    let wanted = &bytes[..end];
                    assert_eq!(ring.reader().payload(Slot(1), length), wanted);
                    let used = ring.reader().used(Slot(1));
                    assert!((end + header..end + header + 8).contains(&used));
                    let mut range = vec![0; end];
                    let row = writer.reader();
                    row.read(slot_end - used, &mut range).expect("in the row");
                    assert_eq!(range, wanted, "{length} of {built} bytes");
                }
            }
            ring.finish(Slot(1), Position(1), SlotLength::Null.encode());
            assert!((header..header + 8).contains(&ring.reader().used(Slot(1))));
        }
    }

    #[test]
    fn out_of_range_slot_and_length_are_clamped() {
        let memory = lines::<1>();
        let row = Row::from_lines(&memory);
        let shape =
            RingShape { offset: 0, stride: 32, slots: 2, capacity: 20, checks: Checks::Off };
        let ring = row.ring(&shape).expect("it fits");
        assert_eq!(ring.payload(Slot(7), u32::MAX).len(), 20);
        assert_eq!(ring.counter(Slot(u32::MAX)).load(), 0);
    }

    #[test]
    fn threads_read_messages_through_moved_or_shared_rings() {
        const SLOTS: u32 = 4;
        const MESSAGES: u32 = if cfg!(miri) { 20 } else { 300 };
        let memory = lines::<4>();
        let writer = RowWriter::from_lines(&memory);
        let shape =
            RingShape { offset: 0, stride: 64, slots: SLOTS, capacity: 32, checks: Checks::Off };
        let ring = writer.ring(&shape).expect("it fits");
        let taken = [AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0)];
        // Errors are counted instead of asserted: the writer would wait for a reader that panicked.
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
                // A slot is reused once all readers are past it.
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
