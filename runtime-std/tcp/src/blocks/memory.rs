//! Block memory: ordinary memory of the process that blocks are sent from and received into.
//!
//! # Invariants
//! - The bytes live as long as a handle exists, or a block from or into them is in flight.
//! - Only the fabric stores into the bytes of a block in flight
//!   ([`Blocks`](tramontane_core::fabric::Blocks)). If another thread does, the receiver gets a mix
//!   of bytes, but nothing else is harmed, because the memory consists of atomics.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tramontane_core::fabric::{self, Area, BlockUse, Regions, TooManyRegions};
use tramontane_core::layout::CACHE_LINE;
use tramontane_core::memory::{BlockPages, Line, OutOfBlock, Row, RowWriter};

/// Block memory of this process, initially zero.
pub type BlockMemory = tramontane_core::memory::BlockMemory<Arc<BlockBytes>>;

/// The bytes of a block memory.
#[derive(Debug)]
pub struct BlockBytes {
    lines: Box<[Line]>,
    /// The requested length, at most that of the lines.
    length: usize,
}

// SAFETY: boxed lines do not move. They consist of atomics, and have at least `length` bytes.
unsafe impl BlockPages for BlockBytes {
    fn base(&self) -> NonNull<u8> {
        Row::from_lines(&self.lines).base()
    }

    fn bytes(&self) -> usize {
        self.length
    }
}

impl BlockBytes {
    /// Returns `None` if the system does not have enough memory.
    fn new(length: usize) -> Option<Arc<Self>> {
        let count = length.div_ceil(CACHE_LINE);
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        // Each line is written, so that no page is missing in the middle of a transfer.
        lines.extend((0..count).map(|_| Line::new()));
        Some(Arc::new(Self { lines: lines.into(), length }))
    }

    /// Returns bytes to be sent.
    pub(super) fn content(&self, offset: usize, length: usize) -> Result<&[u8], OutOfBlock> {
        let base = self.at(offset, length)?;
        // SAFETY: in range by the check; nobody stores there in the meantime, by the invariants of
        // this module.
        Ok(unsafe { std::slice::from_raw_parts(base.as_ptr(), length) })
    }

    /// Stores received bytes.
    pub(crate) fn store(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfBlock> {
        self.at(offset, bytes.len())?;
        Ok(RowWriter::from_lines(&self.lines).apply(offset, bytes)?)
    }
}

/// The reason why there is no block memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoBlockMemory {
    /// All permitted regions exist already.
    #[error(transparent)]
    TooMany(#[from] TooManyRegions),
    /// The system does not have enough memory.
    #[error("the system does not have {0} bytes of memory; use fewer or smaller buffers")]
    TooMuch(usize),
}

/// Makes block memory for one member's fabric. Any thread may have a store. Its lock is held for
/// one search of a list per block.
#[derive(Clone, Debug, Default)]
pub struct BlockStore(Arc<Mutex<Regions<Weak<BlockBytes>>>>);

impl fabric::BlockStore for BlockStore {
    type Pages = Arc<BlockBytes>;
    type Error = NoBlockMemory;

    fn memory(&self, bytes: usize, _: BlockUse) -> Result<BlockMemory, NoBlockMemory> {
        // Allocated before the lock is taken, because this touches every page.
        let pages = BlockBytes::new(bytes).ok_or(NoBlockMemory::TooMuch(bytes))?;
        let mut regions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_gone = |pages: &Weak<BlockBytes>| pages.strong_count() == 0;
        let region = regions.take(Arc::downgrade(&pages), is_gone)?;
        Ok(BlockMemory::new(region, pages))
    }
}

impl BlockStore {
    /// Returns the memory of an area, if it is inside an existing region.
    pub(super) fn of(&self, area: Area, length: usize) -> Option<Arc<BlockBytes>> {
        let regions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = regions.get(area.region)?.upgrade()?;
        pages.at(area.offset, length).is_ok().then_some(pages)
    }
}

#[cfg(test)]
mod tests {
    use tramontane_core::fabric::{BlockStore as _, Region};

    use super::*;

    fn memory(store: &BlockStore, bytes: usize) -> BlockMemory {
        store.memory(bytes, BlockUse::Both).expect("memory")
    }

    #[test]
    fn dropped_region_frees_its_number() {
        let store = BlockStore::default();
        let (first, second) = (memory(&store, 100), memory(&store, 1));
        assert_eq!((first.region(), second.region()), (Region(1), Region(2)));
        assert_eq!(first.bytes(), 100);
        assert!(store.of(first.area(100), 0).is_some() && store.of(first.area(40), 60).is_some());
        for (offset, length) in [(100, 1), (41, 60), (usize::MAX, 2), (0, usize::MAX)] {
            assert!(store.of(first.area(offset), length).is_none(), "{offset} {length}");
        }
        assert!(store.of(Area { region: Region::ROW, offset: 0 }, 0).is_none());
        let (area, kept) = (first.area(0), store.of(first.area(0), 1));
        drop(first);
        assert_eq!(memory(&store, 1).region(), Region(3), "a block of it is under way");
        drop(kept);
        assert!(store.of(area, 0).is_none());
        assert_eq!(memory(&store, 1).region(), Region(1));
    }

    #[test]
    fn received_bytes_are_stored_only_within_memory() {
        let store = BlockStore::default();
        let memory = memory(&store, 100);
        let pages = store.of(memory.area(0), 100).expect("it is there");
        pages.store(90, &[5; 10]).expect("inside");
        assert_eq!(pages.store(91, &[6; 10]), Err(OutOfBlock), "the lines have more");
        let mut seen = [1; 12];
        memory.read(88, &mut seen).expect("inside");
        assert_eq!(seen, [0, 0, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]);
    }
}
