//! The first page of sealed memory: which process made it, for what, and whether it is still used.
//!
//! Its digest is that of the layout for a row, and the number of the memory for blocks. The owner
//! fills the page before it sends the descriptor. What changes later has a cache line to itself.

use std::sync::atomic::{AtomicU64, Ordering};

use super::map::Map;

/// Where the row, or the block memory, starts behind its header.
pub(super) const HEADER_BYTES: usize = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"tramrow\x02");

/// Who made the memory, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Maker {
    /// The owner's node id.
    pub(super) node: u64,
    /// Which start of that node.
    pub(super) incarnation: u64,
    /// The digest of the layout, or the number of the block memory.
    pub(super) number: u64,
}

/// The header of mapped memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'m>(&'m Map);

impl<'m> Header<'m> {
    /// The header of memory that is mapped from its start, for [`HEADER_BYTES`] or more.
    pub(super) const fn new(map: &'m Map) -> Self {
        Self(map)
    }

    /// Fills a fresh header. For the owner.
    pub(super) fn write(self, maker: &Maker) {
        for (offset, value) in [(8, maker.node), (16, maker.incarnation), (24, maker.number)] {
            self.0.cell(offset).store(value, Ordering::Relaxed);
        }
        self.0.cell(0).store(MAGIC, Ordering::Release);
    }

    /// Whether that process made this memory, for that.
    pub(super) fn is_by(self, maker: &Maker) -> bool {
        let word = |offset| self.0.cell(offset).load(Ordering::Relaxed);
        self.0.cell(0).load(Ordering::Acquire) == MAGIC
            && Maker { node: word(8), incarnation: word(16), number: word(24) } == *maker
    }

    /// Whether its owner gave the memory up. Memory that is not there yet is not given up.
    pub(super) fn is_over(self) -> bool {
        self.over().load(Ordering::Acquire) != 0
    }

    /// Says that the memory is given up. For the owner.
    pub(super) fn set_over(self) {
        self.over().store(1, Ordering::Release);
    }

    fn over(self) -> &'m AtomicU64 {
        self.0.cell(64)
    }
}
