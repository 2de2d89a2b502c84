//! Lent memory, seen as cells, slots and payloads. The only `unsafe` in the core.
//!
//! A row is a range of bytes that its owner writes and everybody reads, at the same time and perhaps from
//! other processes. Two rules make that sound, and the rest of the core keeps them:
//!
//! 1. A *cell* is 8 bytes on a multiple of 8 and is touched by atomic operations only.
//! 2. A *payload* is written while its slot's counter says that no message is there, and read after an
//!    acquire load of the counter said that one is. The counter is stored with release. A slot is reused
//!    once all members' delivered frontiers are past it (SMC-2), which its owner reads with acquire.
//!
//! Rows alone do nothing but rule 1: [`Row`] and [`RowWriter`] can be copied and used by anybody, and whatever they do is
//! atomic, 8 bytes at a time. Slices of payloads come from a node alone, and who opens one promises rule 2
//! ([`NodeMemory::new`]).
//!
//! A peer that breaks rule 2 can change bytes while they are read. It cannot move a read: every offset and
//! length comes from the reader's own layout, and whatever a peer says is compared with it first.
//!
//! Accessors are total: a slot or a length out of range is brought into range, so that safety never
//! depends on a caller. Tests: `tests` below, and the simulated runs with torn writes.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::ids::{Slot, index_from_u32};
use crate::layout::{CACHE_LINE, RingShape, SLOT_HEADER};
use crate::sync::between_accesses;

mod lending;

pub use lending::NodeMemory;

/// One cache line of cells: the unit in which a partition declares the memory of rows.
///
/// ```
/// use tramontane_core::memory::{Line, RowWriter};
/// static ROW: [Line; 4] = [const { Line::new() }; 4];
/// assert_eq!(RowWriter::from_lines(&ROW).bytes(), 256);
/// ```
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Line([AtomicU64; 8]);

const _: () = assert!(size_of::<Line>() == CACHE_LINE);

impl Line {
    /// A line of zeros.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 8])
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

/// A row as everybody may see it: read-only.
#[derive(Clone, Copy, Debug)]
pub struct Row<'m> {
    base: NonNull<u8>,
    bytes: usize,
    lent: PhantomData<&'m [Line]>,
}

/// A row as the one who writes it sees it: its owner, or a fabric that applies the owner's writes to a copy.
#[derive(Clone, Copy, Debug)]
pub struct RowWriter<'m> {
    row: Row<'m>,
}

// SAFETY: a row is a shared slice of atomics in disguise: all access is atomic, or ordered by rule 2.
unsafe impl Send for Row<'_> {}
// SAFETY: as above.
unsafe impl Sync for Row<'_> {}
// SAFETY: as above; writing needs no exclusive access, as with an atomic.
unsafe impl Send for RowWriter<'_> {}
// SAFETY: as above.
unsafe impl Sync for RowWriter<'_> {}

// SAFETY: a ring is a part of its row.
unsafe impl Send for Ring<'_> {}
// SAFETY: as above.
unsafe impl Sync for Ring<'_> {}

static_assertions::assert_impl_all!(Row<'static>: Send, Sync, Copy);
static_assertions::assert_impl_all!(RowWriter<'static>: Send, Sync, Copy);

/// A range that lies outside its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OutOfRow;

impl<'m> Row<'m> {
    /// A row over memory that was mapped or registered.
    ///
    /// # Safety
    /// For all of `'m`: `base` is aligned to a cache line and `bytes` bytes from it can be read; whoever
    /// writes them keeps the rules of this module.
    #[must_use]
    pub const unsafe fn from_raw(base: NonNull<u8>, bytes: usize) -> Self {
        Self { base, bytes, lent: PhantomData }
    }

    /// A row over a slice of lines.
    #[must_use]
    pub const fn from_lines(lines: &'m [Line]) -> Self {
        // A `NonNull` from a shared slice: writes through it go to the atomics' interior.
        let base = NonNull::from_ref(lines).cast::<u8>();
        Self { base, bytes: size_of_val(lines), lent: PhantomData }
    }

    /// How many bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of the first byte, for a fabric that registers memory with a device.
    #[must_use]
    pub const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// The cell at an offset.
    ///
    /// # Errors
    /// If it is not aligned, or not inside the row.
    #[inline]
    pub fn cell(&self, offset: usize) -> Result<Cell<'m>, OutOfRow> {
        self.check(offset, 8)?;
        if !offset.is_multiple_of(8) {
            return Err(OutOfRow);
        }
        // SAFETY: in range and aligned, by the two checks above; the memory lives for `'m`; rule 1.
        Ok(Cell(unsafe { self.base.add(offset).cast::<AtomicU64>().as_ref() }))
    }

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
        let RingPlace { offset, stride, slots, capacity, end: _ } = *place;
        // SAFETY: a place's end is not before its offset, and it is inside the row.
        let base = unsafe { self.base.add(offset) };
        Ok(Ring { base, stride, slots, capacity, lent: PhantomData })
    }

    /// Copies bytes out, as a fabric does that carries them elsewhere: each aligned group of 8 at once. A row that is
    /// being written meanwhile yields some mix of old and new groups, as hardware does that reads late.
    ///
    /// # Errors
    /// If the range is not inside the row.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfRow> {
        self.check(offset, into.len())?;
        let mut at = offset;
        let mut rest = into;
        while !rest.is_empty() {
            let count = if at.is_multiple_of(8) && rest.len() >= 8 { 8 } else { 1 };
            let Some((part, after)) = core::mem::take(&mut rest).split_at_mut_checked(count) else {
                break;
            };
            match part.first_chunk_mut::<8>() {
                Some(group) => *group = self.cell(at)?.load().to_ne_bytes(),
                None => part.fill(self.byte(at)?),
            }
            at = at.saturating_add(count);
            rest = after;
        }
        Ok(())
    }

    /// The byte at an offset, out of its group.
    fn byte(&self, offset: usize) -> Result<u8, OutOfRow> {
        let within = offset % 8;
        match self.cell(offset.saturating_sub(within)) {
            Ok(group) => group.load().to_ne_bytes().get(within).copied().ok_or(OutOfRow),
            Err(OutOfRow) => Ok(self.odd_byte(offset)?.load(Ordering::Acquire)),
        }
    }

    /// A byte behind the last whole group of a row that does not end with one.
    fn odd_byte(&self, offset: usize) -> Result<&'m AtomicU8, OutOfRow> {
        self.check(offset, 1)?;
        // SAFETY: in range by the check; no group holds it, so it is touched by this alone.
        Ok(unsafe { self.base.add(offset).cast::<AtomicU8>().as_ref() })
    }

    fn check(&self, offset: usize, bytes: usize) -> Result<(), OutOfRow> {
        let end = offset.checked_add(bytes).ok_or(OutOfRow)?;
        if end > self.bytes { Err(OutOfRow) } else { Ok(()) }
    }
}

impl<'m> RowWriter<'m> {
    /// A row over memory that was mapped or registered.
    ///
    /// # Safety
    /// As [`Row::from_raw`], and the memory can be written.
    #[must_use]
    pub const unsafe fn from_raw(base: NonNull<u8>, bytes: usize) -> Self {
        // SAFETY: the caller's promise.
        Self { row: unsafe { Row::from_raw(base, bytes) } }
    }

    /// A row over a slice of lines.
    #[must_use]
    pub const fn from_lines(lines: &'m [Line]) -> Self {
        Self { row: Row::from_lines(lines) }
    }

    /// The same row, for readers.
    #[must_use]
    pub const fn reader(&self) -> Row<'m> {
        self.row
    }

    /// How many bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.row.bytes
    }

    /// The cell at an offset, to be written.
    ///
    /// # Errors
    /// As [`Row::cell`].
    pub fn cell(&self, offset: usize) -> Result<OwnCell<'m>, OutOfRow> {
        let Cell(cell) = self.row.cell(offset)?;
        Ok(OwnCell(cell))
    }

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

    /// Stores bytes as a peer's write does: in address order, each aligned group of 8 at once and with
    /// release, so that a counter behind its message is seen after it.
    ///
    /// # Errors
    /// If the range is not inside the row.
    pub fn apply(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfRow> {
        self.row.check(offset, bytes.len())?;
        let mut at = offset;
        let mut rest = bytes;
        while let [first, tail @ ..] = rest {
            match rest.split_first_chunk::<8>() {
                Some((chunk, after)) if at.is_multiple_of(8) => {
                    self.row.cell(at)?.0.store(u64::from_ne_bytes(*chunk), Ordering::Release);
                    at = at.saturating_add(8);
                    rest = after;
                }
                _ => {
                    self.store_byte(at, *first)?;
                    at = at.saturating_add(1);
                    rest = tail;
                }
            }
        }
        Ok(())
    }

    /// Stores a byte that is not part of a whole group, with what else is in its group: a copy has one writer.
    fn store_byte(&self, offset: usize, byte: u8) -> Result<(), OutOfRow> {
        let within = offset % 8;
        match self.row.cell(offset.saturating_sub(within)) {
            Ok(Cell(group)) => {
                let mut bytes = group.load(Ordering::Relaxed).to_ne_bytes();
                if let Some(place) = bytes.get_mut(within) {
                    *place = byte;
                }
                group.store(u64::from_ne_bytes(bytes), Ordering::Release);
            }
            Err(OutOfRow) => self.row.odd_byte(offset)?.store(byte, Ordering::Release),
        }
        Ok(())
    }
}

/// A cell that is read.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'m>(&'m AtomicU64);

impl Cell<'_> {
    /// The value; whatever was written before it is seen too.
    #[inline]
    #[must_use]
    pub fn load(&self) -> u64 {
        between_accesses();
        self.0.load(Ordering::Acquire)
    }
}

/// A cell of the own row.
#[derive(Clone, Copy, Debug)]
pub struct OwnCell<'m>(&'m AtomicU64);

impl OwnCell<'_> {
    /// Publishes a value: whoever sees it sees all that was written before.
    #[inline]
    pub fn publish(&self, value: u64) {
        between_accesses();
        self.0.store(value, Ordering::Release);
    }

    /// What was last published here.
    #[inline]
    #[must_use]
    pub fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where a ring lies in a row, checked once: its slots hold what they should, are aligned, and end where it
/// says. What is left to compare is the end with the row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    offset: usize,
    stride: usize,
    slots: u32,
    capacity: u32,
    end: usize,
}

impl RingPlace {
    /// A place to be filled later: a ring without slots, at which every payload is empty.
    pub const VACANT: Self = Self { offset: 0, stride: 0, slots: 0, capacity: 0, end: usize::MAX };

    /// The place of a ring of that shape.
    ///
    /// # Errors
    /// If the slots do not hold what the shape says, are not aligned, or cannot be addressed.
    pub fn new(shape: &RingShape) -> Result<Self, OutOfRow> {
        let RingShape { offset, stride, slots, capacity } = *shape;
        let needed = index_from_u32(capacity).checked_add(SLOT_HEADER).ok_or(OutOfRow)?;
        let bytes = stride.checked_mul(index_from_u32(slots)).ok_or(OutOfRow)?;
        let end = offset.checked_add(bytes).ok_or(OutOfRow)?;
        if slots == 0 || stride < needed {
            return Err(OutOfRow);
        }
        if !offset.is_multiple_of(8) || !stride.is_multiple_of(8) {
            return Err(OutOfRow);
        }
        Ok(Self { offset, stride, slots, capacity, end })
    }

    /// Bytes from the start of the row.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

/// A sender's ring, to be read.
///
/// A slot is payload, padding, a length of 4 bytes, and the counter of 8 at its very end (SMC-6).
#[derive(Clone, Copy, Debug)]
pub struct Ring<'m> {
    base: NonNull<u8>,
    stride: usize,
    slots: u32,
    capacity: u32,
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
        // SAFETY: a slot's last 8 bytes; `RingPlace` and `Row::ring_at` hold the whole ring in the row and its strides and
        // start on multiples of 8; rule 1.
        Cell(unsafe { self.base.add(offset).cast::<AtomicU64>().as_ref() })
    }

    /// The length that stands in a slot, as its owner wrote it: not to be trusted before it is compared
    /// with the capacity.
    #[inline]
    #[must_use]
    pub(crate) fn length(&self, slot: Slot) -> u32 {
        between_accesses();
        self.length_cell(slot).load(Ordering::Relaxed)
    }

    /// The payload of a slot, cut to the capacity if `length` is above it.
    ///
    /// Read it only between the counter that announced it and the delivered frontier that frees it (rule 2).
    #[inline]
    #[must_use]
    pub(crate) fn payload(&self, slot: Slot, length: u32) -> &'m [u8] {
        let start = self.slot_end(slot).wrapping_sub(self.stride);
        let length = index_from_u32(length.min(self.capacity));
        // SAFETY: the payload lies at the start of a slot of the ring and is at most the capacity long;
        // nobody writes it while it is lent, by rule 2.
        unsafe { NonNull::slice_from_raw_parts(self.base.add(start), length).as_ref() }
    }

    fn length_cell(&self, slot: Slot) -> &'m AtomicU32 {
        let offset = self.slot_end(slot).wrapping_sub(SLOT_HEADER);
        // SAFETY: 12 bytes before a slot's end, on a multiple of 4, inside the ring as above; touched only
        // atomically.
        unsafe { self.base.add(offset).cast::<AtomicU32>().as_ref() }
    }

    /// Bytes from the ring's start to the end of a slot; a slot out of range counts as the first.
    ///
    /// Cannot wrap: `RingPlace` showed `stride * slots` to lie in the row.
    #[inline(always)]
    fn slot_end(&self, slot: Slot) -> usize {
        let slot = if slot.0 < self.slots { slot.0 } else { 0 };
        self.stride.wrapping_mul(index_from_u32(slot)).wrapping_add(self.stride)
    }
}

/// Bytes of the next message whose lines are asked for ahead: about as many lines as a processor fetches at once.
const ASKED_AHEAD: usize = 1024;

/// The node's own ring, to be filled.
#[derive(Clone, Copy, Debug)]
pub struct OwnRing<'m> {
    ring: Ring<'m>,
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

    /// Writes a slot's length; it is published with the counter.
    #[inline]
    pub(crate) fn set_length(&self, slot: Slot, length: u32) {
        self.ring.length_cell(slot).store(length, Ordering::Relaxed);
    }

    /// Asks for a slot's lines to be written soon: the slot's end, and of a message of `length` bytes the first
    /// [`ASKED_AHEAD`].
    ///
    /// Peers have read these lines, so the first store to each waits until their processors let go of it.
    /// Asked for while the message before is built, they are here when they are needed: at 1 KB that is
    /// worth a fifth of the rate (`docs/performance.md`). A hint: it changes nothing that can be read.
    #[inline]
    pub(crate) fn ask_ahead(&self, slot: Slot, length: u32) {
        let end = self.ring.slot_end(slot);
        let start = end.wrapping_sub(self.ring.stride);
        let bytes = index_from_u32(length.min(self.ring.capacity)).min(ASKED_AHEAD);
        self.ask_for_line(end.wrapping_sub(8));
        let mut at = 0;
        while at < bytes {
            self.ask_for_line(start.wrapping_add(at));
            at = at.wrapping_add(CACHE_LINE);
        }
    }

    #[inline]
    fn ask_for_line(&self, offset: usize) {
        // SAFETY: callers give offsets inside the ring.
        let line = unsafe { self.ring.base.add(offset) };
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch touches no register and no memory that a program can see.
        unsafe {
            core::arch::asm!("prefetchw [{}]", in(reg) line.as_ptr(), options(nostack, preserves_flags));
        }
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        // SAFETY: as above.
        unsafe {
            core::arch::asm!("prfm pstl1keep, [{}]", in(reg) line.as_ptr(), options(nostack, preserves_flags));
        }
        #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
        let _ = line;
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
    fn cells_outside_or_across_the_row_are_refused() {
        let memory = lines::<2>();
        let row = Row::from_lines(&memory);
        assert!(row.cell(120).is_ok());
        assert!(row.cell(121).is_err());
        assert!(row.cell(128).is_err());
        assert!(row.cell(usize::MAX).is_err());
        assert!(row.read(100, &mut [0; 29]).is_err());
    }

    #[test]
    fn rings_that_do_not_fit_are_refused() {
        let memory = lines::<2>();
        let row = Row::from_lines(&memory);
        let good = RingShape { offset: 0, stride: 16, slots: 8, capacity: 4 };
        assert!(row.ring(&good).is_ok());
        for bad in [
            RingShape { slots: 9, ..good },
            RingShape { slots: 0, ..good },
            RingShape { capacity: 5, ..good },
            RingShape { offset: 4, slots: 1, ..good },
            RingShape { stride: usize::MAX, ..good },
        ] {
            assert!(row.ring(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_built_in_a_slot_is_read_from_it_and_nowhere_else() {
        let memory = lines::<4>();
        let writer = RowWriter::from_lines(&memory);
        let shape = RingShape { offset: 64, stride: 32, slots: 6, capacity: 20 };
        let ring = writer.ring(&shape).expect("it fits");
        ring.payload_mut(Slot(5), 20).fill(0xaa);
        ring.set_length(Slot(5), 20);
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
        let shape = RingShape { offset: 0, stride: 32, slots: 2, capacity: 20 };
        let ring = row.ring(&shape).expect("it fits");
        assert_eq!(ring.payload(Slot(7), u32::MAX).len(), 20);
        assert_eq!(ring.counter(Slot(u32::MAX)).load(), 0);
    }

    #[test]
    fn applied_bytes_land_at_any_alignment() {
        let memory = lines::<2>();
        let writer = RowWriter::from_lines(&memory);
        let bytes: [u8; 37] = core::array::from_fn(|i| u8::try_from(i).unwrap_or(0));
        for offset in 0..=(128 - 37) {
            assert!(writer.apply(offset, &bytes).is_ok());
            let mut back = [0; 37];
            assert!(writer.reader().read(offset, &mut back).is_ok());
            assert_eq!(back, bytes);
        }
        assert!(writer.apply(128 - 36, &bytes).is_err());
    }

    #[test]
    fn a_row_that_ends_within_a_group_is_read_and_stored_to_its_last_byte() {
        let memory = lines::<1>();
        let base = NonNull::from_ref(&memory).cast::<u8>();
        // SAFETY: the first bytes of the line above, which outlives both.
        let writer = unsafe { RowWriter::from_raw(base, 13) };
        for offset in 0..=5 {
            let bytes: [u8; 8] = core::array::from_fn(|i| u8::try_from(i + offset).unwrap_or(0));
            assert!(writer.apply(offset, &bytes).is_ok());
            let mut back = [0; 8];
            assert!(writer.reader().read(offset, &mut back).is_ok());
            assert_eq!(back, bytes);
        }
        assert!(writer.apply(6, &[1; 8]).is_err());
        assert!(writer.reader().read(6, &mut [0; 8]).is_err());
    }

    /// Two threads that store and copy the same bytes: groups may be mixed, and none is torn.
    #[test]
    fn what_is_copied_while_it_is_stored_has_whole_groups() {
        let memory = lines::<4>();
        let (writer, rounds) =
            (RowWriter::from_lines(&memory), if cfg!(miri) { 20 } else { 20_000 });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..rounds {
                    let byte = u8::try_from(round % 251).unwrap_or(0);
                    writer.apply(0, &[byte; 256]).expect("in the row");
                }
            });
            let mut copy = [0; 256];
            for _ in 0..rounds {
                writer.reader().read(0, &mut copy).expect("in the row");
                assert!(copy.chunks(8).all(|group| group.iter().all(|byte| *byte == group[0])));
            }
        });
    }
}
