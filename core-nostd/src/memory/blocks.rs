//! Block memory on hosts: the owner's view of the bytes that blocks are sent from and received
//! into.
//!
//! While a block is in flight, the fabric or a device reads or fills the same bytes. The owner
//! therefore copies them in and out atomically, as it does with cells. A plain slice of these bytes
//! requires the caller's promise that no block in the range is in flight.
//!
//! Requirement: MEM-2.

use core::ops::Deref;
use core::ptr::NonNull;

use super::line::OutOfRow;
use super::row::{Row, RowWriter};
use crate::fabric::{Area, Region};

/// The owner of the bytes of a block memory.
///
/// # Safety
/// As long as this value exists, this process can read and write `bytes()` bytes from `base()`;
/// `base()` is aligned to a cache line, and neither changes. Threads of this process access the
/// bytes only atomically, except through slices for which a caller has given its promise
/// ([`BlockMemory::slice`]).
pub unsafe trait BlockPages {
    /// Returns the address of the first byte.
    fn base(&self) -> NonNull<u8>;

    /// Returns the size in bytes.
    fn bytes(&self) -> usize;

    /// Returns the address of a range.
    ///
    /// # Errors
    /// Fails if the range is not inside the memory.
    fn at(&self, offset: usize, length: usize) -> Result<NonNull<u8>, OutOfBlock> {
        let end = offset.checked_add(length).ok_or(OutOfBlock)?;
        if end > self.bytes() {
            return Err(OutOfBlock);
        }
        // SAFETY: the check above shows that this is not past the end of the range.
        Ok(unsafe { self.base().add(offset) })
    }
}

/// A range that is outside its block memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OutOfBlock;

impl core::fmt::Display for OutOfBlock {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("the range is outside the block memory; compare it with bytes()")
    }
}

impl core::error::Error for OutOfBlock {}

impl From<OutOfRow> for OutOfBlock {
    fn from(_: OutOfRow) -> Self {
        Self
    }
}

/// Block memory, as its owner holds it. The memory is freed once this value has been dropped and no
/// block is in flight from or into it.
///
/// `P` is a pointer that the fabric also holds ([`BlockStore`](crate::fabric::BlockStore)).
pub struct BlockMemory<P> {
    region: Region,
    pages: P,
}

impl<P> core::fmt::Debug for BlockMemory<P> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("BlockMemory").field("region", &self.region).finish_non_exhaustive()
    }
}

impl<P> BlockMemory<P> {
    /// Wraps memory that its fabric identifies by `region`.
    #[must_use]
    pub const fn new(region: Region, pages: P) -> Self {
        Self { region, pages }
    }

    /// Returns the region by which the fabric identifies this memory. Peers never learn it.
    #[must_use]
    pub const fn region(&self) -> Region {
        self.region
    }

    /// Returns the area that begins at `offset`.
    #[must_use]
    pub const fn area(&self, offset: usize) -> Area {
        Area { region: self.region, offset }
    }

    /// Replaces the pointer to the memory with another pointer.
    #[must_use]
    pub fn map<Q>(self, pages: impl FnOnce(P) -> Q) -> BlockMemory<Q> {
        BlockMemory { region: self.region, pages: pages(self.pages) }
    }
}

impl<P: Deref<Target: BlockPages>> BlockMemory<P> {
    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pages.bytes()
    }

    /// Returns the address of the first byte, which is aligned to a cache line.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.pages.base()
    }

    /// Copies bytes out. If a block is arriving in the range, the result is a mix of old and new
    /// bytes.
    ///
    /// # Errors
    /// Fails if the range is not inside the memory.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfBlock> {
        let pages = &*self.pages;
        // SAFETY: readable as long as the pages exist; they are borrowed for as long as the row is.
        let row = unsafe { Row::from_raw(pages.base(), pages.bytes()) };
        Ok(row.read(offset, into)?)
    }

    /// Copies bytes in. Do not use it for a range that a block is being sent from: the receiver
    /// would get a mix of old and new bytes.
    ///
    /// # Errors
    /// Fails if the range is not inside the memory.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), OutOfBlock> {
        let pages = &*self.pages;
        // SAFETY: as in `read`, and the memory is writable.
        let row = unsafe { RowWriter::from_raw(pages.base(), pages.bytes()) };
        Ok(row.apply(offset, bytes)?)
    }

    /// Returns a range without copying it.
    ///
    /// # Errors
    /// Fails if the range is not inside the memory.
    ///
    /// # Safety
    /// As long as the slice exists, nothing is written to the range, and no receive that may still
    /// be filled is posted into it.
    pub unsafe fn slice(&self, offset: usize, length: usize) -> Result<&[u8], OutOfBlock> {
        let base = self.pages.at(offset, length)?;
        // SAFETY: the range is inside the memory by the check, and valid as long as `self` is; it
        // is not written meanwhile, by the caller's promise.
        Ok(unsafe { core::slice::from_raw_parts(base.as_ptr(), length) })
    }

    /// Returns a range to be filled in place.
    ///
    /// # Errors
    /// Fails if the range is not inside the memory.
    ///
    /// # Safety
    /// As long as the slice exists, nothing else reads or writes the range: no thread, no receive
    /// that may still be filled, and no block that is being sent from it.
    pub unsafe fn slice_mut(
        &mut self,
        offset: usize,
        length: usize,
    ) -> Result<&mut [u8], OutOfBlock> {
        let base = self.pages.at(offset, length)?;
        // SAFETY: the range is inside the memory by the check, and writable as long as `self` is
        // valid; it is not accessed by anything else meanwhile, by the caller's promise.
        Ok(unsafe { core::slice::from_raw_parts_mut(base.as_ptr(), length) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Line;
    use std::sync::Arc;

    struct Lines(Box<[Line]>, usize);

    // SAFETY: the lines are boxed, so their address is stable; they consist of atomics.
    unsafe impl BlockPages for Lines {
        fn base(&self) -> NonNull<u8> {
            Row::from_lines(&self.0).base()
        }

        fn bytes(&self) -> usize {
            self.1
        }
    }

    fn memory(bytes: usize) -> BlockMemory<Arc<Lines>> {
        let lines = (0..bytes.div_ceil(64)).map(|_| Line::new()).collect();
        BlockMemory::new(Region(3), Arc::new(Lines(lines, bytes)))
    }

    #[test]
    fn block_write_changes_only_its_range() {
        let mut memory = memory(200);
        memory.write(77, &[5; 100]).expect("inside");
        let mut seen = [1; 200];
        memory.read(0, &mut seen).expect("inside");
        assert!(seen[..77].iter().chain(&seen[177..]).all(|byte| *byte == 0));
        assert_eq!(seen[77..177], [5; 100]);
        memory.write(199, &[9]).expect("the last byte");
        // SAFETY: nothing else uses this memory.
        assert_eq!(unsafe { memory.slice(198, 2) }, Ok(&[0, 9][..]));
        // SAFETY: as above.
        unsafe { memory.slice_mut(0, 2) }.expect("inside").fill(8);
        memory.read(0, &mut seen[..3]).expect("inside");
        assert_eq!(seen[..3], [8, 8, 0]);
        assert_eq!(memory.area(7), Area { region: Region(3), offset: 7 });
    }

    /// A host that keeps several kinds of memory in one list wraps their pointers.
    #[test]
    fn mapped_block_memory_keeps_its_region() {
        let mut memory = memory(100);
        memory.write(0, &[3; 100]).expect("inside");
        let base = memory.base();
        assert_eq!((memory.region(), memory.bytes()), (Region(3), 100));
        assert!(base.addr().get().is_multiple_of(64));
        let mut kept = None;
        let mapped = memory.map(|pages| {
            kept = Some(Arc::clone(&pages));
            Box::new(Lines(Box::new([Line::new()]), 8))
        });
        assert_eq!((mapped.region(), mapped.bytes()), (Region(3), 8));
        assert_eq!(kept.map(|pages| pages.base()), Some(base));
        assert!(format!("{mapped:?}").contains("Region(3)"), "and not its bytes");
    }

    #[test]
    fn out_of_range_block_memory_access_is_refused() {
        let mut memory = memory(100);
        for (offset, length) in [(100, 1), (41, 60), (101, 0), (usize::MAX, 2)] {
            let mut bytes = [0; 60];
            assert_eq!(memory.read(offset, &mut bytes[..length]), Err(OutOfBlock), "{offset}");
            assert_eq!(memory.write(offset, &bytes[..length]), Err(OutOfBlock), "{offset}");
            // SAFETY: nothing else uses this memory.
            assert_eq!(unsafe { memory.slice(offset, length) }, Err(OutOfBlock), "{offset}");
        }
        // SAFETY: as above.
        assert_eq!(unsafe { memory.slice(0, usize::MAX) }, Err(OutOfBlock));
        assert!(memory.read(100, &mut []).is_ok() && memory.read(40, &mut [0; 60]).is_ok());
    }
}
