//! Block memory: plain memory of the process, from which blocks are sent and into which they come.
//!
//! # Invariants
//! - The bytes live as long as anybody has the handle, or a block from them or into them is under way.
//! - Of a block that is under way, nobody but the fabric stores the bytes ([`Blocks`](tramontane_core::fabric::Blocks)).
//!   Who does costs its receiver some mix of bytes, and nobody anything else: the memory is made of atomics.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tramontane_core::fabric::{Area, Region};
use tramontane_core::layout::CACHE_LINE;
use tramontane_core::memory::{Line, Row};

use crate::block_range::{OutOfMemory, check};
use crate::tcp::memory::checked;

/// Block memories that a fabric may have at a time.
const REGIONS_MAX: u16 = 1024;

/// Block memory of this process, at first all zero: the owner's handle. The memory goes when this is dropped, and nothing
/// of it is under way.
#[derive(Debug)]
pub struct BlockMemory {
    region: Region,
    bytes: Arc<BlockBytes>,
}

impl BlockMemory {
    /// The region's number at its own member. Peers never learn it.
    #[must_use]
    pub const fn region(&self) -> Region {
        self.region
    }

    /// A place in it.
    #[must_use]
    pub const fn area(&self, offset: usize) -> Area {
        Area { region: self.region, offset }
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.length
    }

    /// The first byte. It starts on a cache line.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        Row::from_lines(&self.bytes.lines).base()
    }

    /// Copies bytes out. A range that a block is just coming into yields some mix.
    ///
    /// # Errors
    /// If the range is not inside.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfMemory> {
        into.copy_from_slice(self.bytes.content(offset, into.len())?);
        Ok(())
    }

    /// Copies bytes in. Not into a range that is being sent: peers would get some mix.
    ///
    /// # Errors
    /// If the range is not inside.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), OutOfMemory> {
        self.bytes.landing(offset, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// The bytes of a range, where they are.
    ///
    /// # Errors
    /// If the range is not inside.
    ///
    /// # Safety
    /// While this is kept nobody stores in the range: no thread, and no receive for it is posted.
    pub unsafe fn slice(&self, offset: usize, length: usize) -> Result<&[u8], OutOfMemory> {
        self.bytes.content(offset, length)
    }

    /// The bytes of a range, where they are, to be changed.
    ///
    /// # Errors
    /// If the range is not inside.
    ///
    /// # Safety
    /// While this is kept nobody else reads or stores in the range: no thread, and no block from it or into it is
    /// under way.
    pub unsafe fn slice_mut(
        &mut self,
        offset: usize,
        length: usize,
    ) -> Result<&mut [u8], OutOfMemory> {
        self.bytes.landing(offset, length)
    }
}

/// The memory itself.
#[derive(Debug)]
pub(in crate::tcp) struct BlockBytes {
    lines: Box<[Line]>,
    /// What was asked for: at most what the lines have.
    length: usize,
}

impl BlockBytes {
    /// None if the system has not so much.
    fn new(length: usize) -> Option<Arc<Self>> {
        let count = length.div_ceil(CACHE_LINE);
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        // Each is stored, so that no page is missing in the middle of a transfer.
        lines.extend((0..count).map(|_| Line::new()));
        Some(Arc::new(Self { lines: lines.into(), length }))
    }

    fn base(&self, offset: usize, length: usize) -> Result<*mut u8, OutOfMemory> {
        // The lines may hold more than was asked for.
        check(offset, length, self.length)?;
        checked(&self.lines, offset, length).map_err(|_| OutOfMemory)
    }

    /// Bytes that are to be sent.
    pub(super) fn content(&self, offset: usize, length: usize) -> Result<&[u8], OutOfMemory> {
        let base = self.base(offset, length)?;
        // SAFETY: in range by the check; nobody stores there meanwhile, by the invariants of this module.
        Ok(unsafe { std::slice::from_raw_parts(base, length) })
    }

    /// Where bytes are to come. The caller looks at nothing else of the memory while it has this.
    #[allow(
        clippy::mut_from_ref,
        reason = "the memory is made of atomics, and what is under way is the fabric's"
    )]
    pub(in crate::tcp) fn landing(
        &self,
        offset: usize,
        length: usize,
    ) -> Result<&mut [u8], OutOfMemory> {
        let base = self.base(offset, length)?;
        // SAFETY: in range by the check; neither read nor stored by anybody else meanwhile, by the invariants of this
        // module; the memory is made of atomics, so it may change behind a shared reference.
        Ok(unsafe { std::slice::from_raw_parts_mut(base, length) })
    }
}

/// Why there is no block memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoBlockMemory {
    /// There are as many regions as there can be.
    #[error(
        "this process has {REGIONS_MAX} block memories already; drop one before another is made"
    )]
    TooMany,
    /// The system has not so much.
    #[error("the system has no {0} bytes of memory; take smaller buffers, or fewer")]
    TooMuch(usize),
}

/// The regions of one member, by number: what makes block memory for its fabric. Any thread may have one; its lock is
/// held for a look at a list, once a block.
#[derive(Clone, Debug, Default)]
pub struct BlockStore {
    /// The first is region 1: the row is 0.
    regions: Arc<Mutex<Vec<Weak<BlockBytes>>>>,
}

impl BlockStore {
    /// Makes a region of so many bytes, under the first number that nobody uses. It lasts until its handles are dropped,
    /// and what is under way of it has gone or come.
    ///
    /// # Errors
    /// [`NoBlockMemory`].
    pub fn memory(&self, length: usize) -> Result<BlockMemory, NoBlockMemory> {
        // Before the lock: it touches every page.
        let bytes = BlockBytes::new(length).ok_or(NoBlockMemory::TooMuch(length))?;
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let free = regions.iter().position(|bytes| bytes.strong_count() == 0);
        let place = free.unwrap_or(regions.len());
        let region =
            u16::try_from(place + 1).ok().filter(|_| place < usize::from(REGIONS_MAX)).map(Region);
        let region = region.ok_or(NoBlockMemory::TooMany)?;
        if free.is_none() {
            regions.push(Weak::new());
        }
        regions[place] = Arc::downgrade(&bytes);
        Ok(BlockMemory { region, bytes })
    }

    /// The memory of an area, if it lies in a region that is there.
    pub(super) fn of(&self, area: Area, length: usize) -> Option<Arc<BlockBytes>> {
        let place = usize::from(area.region.0).checked_sub(1)?;
        let regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = regions.get(place)?.upgrade()?;
        check(area.offset, length, bytes.length).is_ok().then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_there_as_long_as_its_handle_and_its_number_comes_again() {
        let regions = BlockStore::default();
        let first = regions.memory(100).expect("memory");
        let second = regions.memory(1).expect("memory");
        assert_eq!((first.region(), second.region()), (Region(1), Region(2)));
        assert_eq!(first.bytes(), 100);
        assert!(
            regions.of(first.area(100), 0).is_some() && regions.of(first.area(40), 60).is_some()
        );
        for (offset, length) in [(100, 1), (41, 60), (usize::MAX, 2), (0, usize::MAX)] {
            assert!(regions.of(first.area(offset), length).is_none(), "{offset} {length}");
            assert!(length > 100 || first.read(offset, &mut vec![0; length]).is_err());
        }
        assert!(regions.of(Area { region: Region::ROW, offset: 0 }, 0).is_none());
        let (area, kept) = (first.area(0), regions.of(first.area(0), 1));
        drop(first);
        assert_eq!(
            regions.memory(1).expect("memory").region(),
            Region(3),
            "a block of it is under way"
        );
        drop(kept);
        assert!(regions.of(area, 0).is_none());
        assert_eq!(regions.memory(1).expect("memory").region(), Region(1));
    }

    #[test]
    fn what_is_written_is_read() {
        let mut memory = BlockStore::default().memory(200).expect("memory");
        memory.write(77, &[5; 100]).expect("inside");
        let mut seen = [1; 200];
        memory.read(0, &mut seen).expect("inside");
        assert!(seen[..77].iter().chain(&seen[177..]).all(|byte| *byte == 0));
        assert_eq!(seen[77..177], [5; 100]);
    }
}
