//! The default of a store of blocks (FAB-4).

use std::ops::Deref;
use std::ptr::NonNull;

use super::recorder::{StaticRows, static_rows};
use tramontane_core::fabric::{BlockStore, BlockUse, ErrorKind, Region, ViewRows as _};
use tramontane_core::memory::{BlockMemory, BlockPages};

/// Block memory consisting of the recorder's only line.
#[derive(Clone)]
struct OneLine;

struct Pages(StaticRows);

// SAFETY: the memory is static and consists of atomics.
unsafe impl BlockPages for Pages {
    fn base(&self) -> NonNull<u8> {
        self.0.rows()[0].base()
    }
    fn bytes(&self) -> usize {
        self.0.rows()[0].bytes()
    }
}

impl Deref for Pages {
    type Target = Self;
    fn deref(&self) -> &Self {
        self
    }
}

impl BlockStore for OneLine {
    type Pages = Pages;
    type Error = ErrorKind;
    fn memory(&self, bytes: usize, _: BlockUse) -> Result<BlockMemory<Pages>, ErrorKind> {
        let is_made = bytes <= 64;
        is_made.then(|| BlockMemory::new(Region(1), Pages(static_rows()))).ok_or(ErrorKind::Other)
    }
}

/// A store's memory may be reused at once, unless the store says otherwise.
#[test]
fn block_memory_may_be_reused_immediately_by_default() {
    assert!(OneLine.memory(64, BlockUse::Both).is_ok_and(|memory| memory.bytes() == 64));
    assert!(!OneLine.fills_late());
}
