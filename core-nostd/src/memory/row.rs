//! A row: bytes that its owner writes and every member reads, 8 at a time.
//!
//! Requirements: MEM-1, SMC-6.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::line::{Line, OutOfRow};
use crate::sync::between_accesses;

/// A row as every member may see it: read-only.
#[derive(Clone, Copy, Debug)]
pub struct Row<'m> {
    pub(super) base: NonNull<u8>,
    pub(super) bytes: usize,
    lent: PhantomData<&'m [Line]>,
}

/// A row as its writer sees it. The writer is its owner, or a fabric that applies the owner's
/// writes to a copy.
#[derive(Clone, Copy, Debug)]
pub struct RowWriter<'m> {
    pub(super) row: Row<'m>,
}

// SAFETY: in effect, a row is a shared slice of atomics: every access is either atomic or ordered
// by rule 2.
unsafe impl Send for Row<'_> {}
// SAFETY: as above.
unsafe impl Sync for Row<'_> {}
// SAFETY: as above; writing needs no exclusive access, as with an atomic.
unsafe impl Send for RowWriter<'_> {}
// SAFETY: as above.
unsafe impl Sync for RowWriter<'_> {}

static_assertions::assert_impl_all!(Row<'static>: Send, Sync, Copy);
static_assertions::assert_impl_all!(RowWriter<'static>: Send, Sync, Copy);

impl<'m> Row<'m> {
    /// Creates a row over memory that has been mapped or registered.
    ///
    /// # Safety
    /// For all of `'m`: `base` is aligned to a cache line, `bytes` bytes from it can be read, and
    /// everything that writes to them follows the rules of this module.
    #[must_use]
    pub const unsafe fn from_raw(base: NonNull<u8>, bytes: usize) -> Self {
        Self { base, bytes, lent: PhantomData }
    }

    /// Creates a row over a slice of lines.
    #[must_use]
    pub const fn from_lines(lines: &'m [Line]) -> Self {
        // The pointer comes from a shared slice; writes through it go to the interior of the
        // atomics.
        let base = NonNull::from_ref(lines).cast::<u8>();
        Self { base, bytes: size_of_val(lines), lent: PhantomData }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the address of the first byte, for a fabric that registers memory with a device.
    #[must_use]
    pub const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the cell at an offset.
    ///
    /// # Errors
    /// Fails if the offset is not aligned or the cell is not inside the row.
    #[inline]
    pub fn cell(&self, offset: usize) -> Result<Cell<'m>, OutOfRow> {
        self.check(offset, 8)?;
        if !offset.is_multiple_of(8) {
            return Err(OutOfRow);
        }
        // SAFETY: in range and aligned, by the two checks above; the memory lives for `'m`; rule 1.
        Ok(Cell(unsafe { self.base.add(offset).cast::<AtomicU64>().as_ref() }))
    }

    /// Copies bytes out, one aligned group of 8 at a time, for a fabric that sends them elsewhere.
    /// If the row is written meanwhile, the copy is a mix of old and new groups, as with hardware
    /// that reads late.
    ///
    /// # Errors
    /// Fails if the range is not inside the row.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfRow> {
        self.check(offset, into.len())?;
        let mut at = offset;
        let mut rest = into;
        // bound: at least one byte per turn, of the bytes to be read
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

    /// Returns `count` whole groups of 8 bytes, starting at `offset`.
    fn groups(&self, offset: usize, count: usize) -> Result<&'m [AtomicU64], OutOfRow> {
        self.check(offset, count.checked_mul(8).ok_or(OutOfRow)?)?;
        if !offset.is_multiple_of(8) {
            return Err(OutOfRow);
        }
        // SAFETY: the groups are in range and aligned, by the checks above; the memory lives for
        // `'m`; rule 1.
        Ok(unsafe {
            core::slice::from_raw_parts(self.base.add(offset).cast::<AtomicU64>().as_ptr(), count)
        })
    }

    /// Returns the byte at an offset, extracted from its group.
    fn byte(&self, offset: usize) -> Result<u8, OutOfRow> {
        let within = offset % 8;
        match self.cell(offset.saturating_sub(within)) {
            Ok(group) => group.load().to_ne_bytes().get(within).copied().ok_or(OutOfRow),
            Err(OutOfRow) => Ok(self.odd_byte(offset)?.load(Ordering::Acquire)),
        }
    }

    /// Returns the byte at an offset after the last whole group of a row whose size is not a
    /// multiple of 8.
    fn odd_byte(&self, offset: usize) -> Result<&'m AtomicU8, OutOfRow> {
        self.check(offset, 1)?;
        // SAFETY: in range by the check. No group contains this byte, so it is accessed only here.
        Ok(unsafe { self.base.add(offset).cast::<AtomicU8>().as_ref() })
    }

    fn check(&self, offset: usize, bytes: usize) -> Result<(), OutOfRow> {
        let end = offset.checked_add(bytes).ok_or(OutOfRow)?;
        if end > self.bytes { Err(OutOfRow) } else { Ok(()) }
    }
}

impl<'m> RowWriter<'m> {
    /// Creates a writer over memory that has been mapped or registered.
    ///
    /// # Safety
    /// The caller's promise is that of [`Row::from_raw`], and the memory must be writable.
    #[must_use]
    pub const unsafe fn from_raw(base: NonNull<u8>, bytes: usize) -> Self {
        // SAFETY: by the caller's promise.
        Self { row: unsafe { Row::from_raw(base, bytes) } }
    }

    /// Creates a writer over a slice of lines.
    #[must_use]
    pub const fn from_lines(lines: &'m [Line]) -> Self {
        Self { row: Row::from_lines(lines) }
    }

    /// Returns the same row, for readers.
    #[must_use]
    pub const fn reader(&self) -> Row<'m> {
        self.row
    }

    /// Returns the size in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.row.bytes
    }

    /// Returns the cell at an offset, for writing.
    ///
    /// # Errors
    /// Fails as [`Row::cell`] does.
    pub fn cell(&self, offset: usize) -> Result<OwnCell<'m>, OutOfRow> {
        let Cell(cell) = self.row.cell(offset)?;
        Ok(OwnCell(cell))
    }

    /// Stores bytes as a peer's write does: in address order, with one release store for each
    /// aligned group of 8. A counter that is stored after its message is therefore seen after the
    /// message.
    ///
    /// # Errors
    /// Fails if the range is not inside the row.
    #[inline(never)]
    pub fn apply(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfRow> {
        self.row.check(offset, bytes.len())?;
        let head = (8_usize.saturating_sub(offset % 8) % 8).min(bytes.len());
        let (body, tail) = bytes.get(head..).unwrap_or_default().as_chunks::<8>();
        let head = bytes.get(..head).unwrap_or_default();
        let start = offset.saturating_add(head.len());
        self.store_bytes(offset, head)?;
        if !body.is_empty() {
            let groups = self.row.groups(start, body.len())?;
            // bound: the groups of the range
            for (group, bytes) in groups.iter().zip(body) {
                group.store(u64::from_ne_bytes(*bytes), Ordering::Release);
            }
        }
        self.store_bytes(start.saturating_add(body.as_flattened().len()), tail)
    }

    /// Stores bytes that do not form a whole group.
    fn store_bytes(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfRow> {
        let mut at = offset;
        // bound: the bytes to be stored
        for byte in bytes {
            self.store_byte(at, *byte)?;
            at = at.saturating_add(1);
        }
        Ok(())
    }

    /// Copies bytes from another row. The bytes are stored as by [`apply`](Self::apply), but
    /// without an intermediate buffer; this is for a fabric that copies from one memory to another.
    /// It is fastest if both offsets are equal modulo 8. If the two ranges overlap, the result is a
    /// mix.
    ///
    /// # Errors
    /// Fails if one of the ranges is not inside its row.
    pub fn copy_from(
        &self,
        offset: usize,
        source: &Row<'_>,
        source_offset: usize,
        length: usize,
    ) -> Result<(), OutOfRow> {
        self.row.check(offset, length)?;
        source.check(source_offset, length)?;
        let (behind, source_behind) = (offset % 8, source_offset % 8);
        if behind != source_behind {
            return self.copy_by_buffer(offset, source, source_offset, length);
        }
        let head = (8_usize.saturating_sub(behind) % 8).min(length);
        let (start, source_start) =
            (offset.saturating_add(head), source_offset.saturating_add(head));
        let rest = length.saturating_sub(head);
        let tail = rest % 8;
        let body = rest.saturating_sub(tail);
        self.copy_part(offset, source, source_offset, head)?;
        if body > 0 {
            between_accesses();
            let (groups, from) = (body >> 3, source_start);
            let (to, from) = (self.row.groups(start, groups)?, source.groups(from, groups)?);
            // bound: the groups of both ranges
            for (to, from) in to.iter().zip(from) {
                to.store(from.load(Ordering::Acquire), Ordering::Release);
            }
        }
        let (end, source_end) = (start.saturating_add(body), source_start.saturating_add(body));
        self.copy_part(end, source, source_end, tail)
    }

    /// Copies bytes within one group; their offset in the group is the same in both rows.
    fn copy_part(
        &self,
        offset: usize,
        source: &Row<'_>,
        source_offset: usize,
        length: usize,
    ) -> Result<(), OutOfRow> {
        if length == 0 {
            return Ok(());
        }
        let within = offset % 8;
        let to = self.row.cell(offset.saturating_sub(within));
        let from = source.cell(source_offset.saturating_sub(within));
        let (Ok(Cell(to)), Ok(Cell(from))) = (to, from) else {
            return self.copy_by_buffer(offset, source, source_offset, length);
        };
        let bits = |bytes: usize| u32::try_from(bytes.saturating_mul(8)).unwrap_or(u32::MAX);
        let ones = u64::MAX.checked_shr(bits(8_usize.saturating_sub(length))).unwrap_or(0);
        // The mask follows address order on every machine.
        let mask = u64::from_le(ones.checked_shl(bits(within)).unwrap_or(0));
        let kept = to.load(Ordering::Relaxed) & !mask;
        to.store(kept | (from.load(Ordering::Acquire) & mask), Ordering::Release);
        Ok(())
    }

    /// Copies bytes that do not form whole groups in both rows.
    fn copy_by_buffer(
        &self,
        offset: usize,
        source: &Row<'_>,
        source_offset: usize,
        length: usize,
    ) -> Result<(), OutOfRow> {
        let mut buffer = [0; 64];
        let mut done = 0_usize;
        // bound: at least one byte per turn, of the bytes to be copied
        while done < length {
            let count = length.saturating_sub(done).min(buffer.len());
            let part = buffer.get_mut(..count).ok_or(OutOfRow)?;
            source.read(source_offset.saturating_add(done), part)?;
            self.apply(offset.saturating_add(done), part)?;
            done = done.saturating_add(count);
        }
        Ok(())
    }

    /// Stores a byte that is not part of a whole group, together with the rest of its group. This
    /// is safe because a copy has only one writer.
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

/// A cell, for reading.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'m>(pub(super) &'m AtomicU64);

impl Cell<'_> {
    /// Loads the value; everything that was written before the value was published is visible too.
    #[inline]
    #[must_use]
    pub fn load(&self) -> u64 {
        between_accesses();
        self.0.load(Ordering::Acquire)
    }
}

/// A cell of the local row.
#[derive(Clone, Copy, Debug)]
pub struct OwnCell<'m>(pub(super) &'m AtomicU64);

impl OwnCell<'_> {
    /// Publishes a value: a reader that sees the value also sees everything that was written before
    /// it.
    #[inline]
    pub fn publish(&self, value: u64) {
        between_accesses();
        self.0.store(value, Ordering::Release);
    }

    /// Returns the value that was last published in this cell.
    #[inline]
    #[must_use]
    pub fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<const N: usize>() -> [Line; N] {
        [const { Line::new() }; N]
    }

    #[test]
    fn cell_crossing_or_outside_the_row_is_refused() {
        let memory = lines::<2>();
        let row = Row::from_lines(&memory);
        assert!(row.cell(120).is_ok());
        assert!(row.cell(121).is_err());
        assert!(row.cell(128).is_err());
        assert!(row.cell(usize::MAX).is_err());
        assert!(row.read(100, &mut [0; 29]).is_err());
    }

    #[test]
    fn bytes_can_be_applied_at_any_alignment() {
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
    fn all_bytes_of_an_unaligned_row_are_accessible() {
        let memory = lines::<1>();
        let base = NonNull::from_ref(&memory).cast::<u8>();
        // SAFETY: these are the first bytes of the line above, which outlives both.
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
        let from = lines::<1>();
        let source = RowWriter::from_lines(&from);
        for offset in 0..=5 {
            let bytes: [u8; 8] = core::array::from_fn(|i| u8::try_from(i + 40).unwrap_or(0));
            assert!(source.apply(offset, &bytes).is_ok() && writer.apply(0, &[0xa5; 13]).is_ok());
            assert!(writer.copy_from(offset, &source.reader(), offset, 8).is_ok());
            let mut expected = [0xa5; 13];
            expected[offset..offset + 8].copy_from_slice(&bytes);
            let mut seen = [0; 13];
            assert!(writer.reader().read(0, &mut seen).is_ok());
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn row_copy_works_at_any_two_alignments() {
        let (from, to) = (lines::<2>(), lines::<2>());
        let (source, target) = (RowWriter::from_lines(&from), RowWriter::from_lines(&to));
        let bytes: [u8; 128] = core::array::from_fn(|i| u8::try_from(i + 1).unwrap_or(0));
        assert!(source.apply(0, &bytes).is_ok());
        let pairs = (0..16).flat_map(|one| (0..16).map(move |two| (one, two)));
        // Under Miri, trying all of them would take minutes.
        for (offset, source_offset) in pairs.step_by(if cfg!(miri) { 11 } else { 1 }) {
            for length in [0, 1, 5, 7, 8, 9, 15, 16, 17, 24, 61, 100, 112] {
                assert!(target.apply(0, &[0xa5; 128]).is_ok());
                let copied = target.copy_from(offset, &source.reader(), source_offset, length);
                assert!(copied.is_ok());
                let mut expected = [0xa5; 128];
                expected[offset..offset + length]
                    .copy_from_slice(&bytes[source_offset..source_offset + length]);
                let mut seen = [0; 128];
                assert!(target.reader().read(0, &mut seen).is_ok());
                assert_eq!(seen, expected, "{length} bytes from {source_offset} to {offset}");
            }
        }
        for (offset, source_offset, length) in
            [(121, 0, 8), (0, 121, 8), (usize::MAX, 0, 8), (0, usize::MAX, 8), (0, 0, usize::MAX)]
        {
            let reader = source.reader();
            assert!(target.copy_from(offset, &reader, source_offset, length).is_err());
        }
    }

    /// One thread stores bytes while another copies them: old and new groups may be mixed, but none
    /// is torn.
    #[test]
    fn concurrent_copy_never_tears_an_eight_byte_group() {
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
