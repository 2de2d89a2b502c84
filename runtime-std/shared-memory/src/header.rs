//! The first page of sealed memory, which names the process that created it and its purpose, and
//! says whether it is still used.
//!
//! The digest is that of the layout for a row, and the serial number for block memory. The owner
//! fills the page before it sends the descriptor. Fields that change later have their own cache
//! line.

use std::sync::atomic::{AtomicU64, Ordering};

use super::map::Map;

/// The offset of the row, or of the block memory, after its header.
pub(super) const HEADER_BYTES: usize = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"tramrow\x02");

/// The creator of the memory, and its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Maker {
    /// The owner's node id.
    pub(super) node: u64,
    /// The incarnation of that node.
    pub(super) incarnation: u64,
    /// The digest of the layout, or the serial number of the block memory.
    pub(super) number: u64,
}

/// The header of mapped memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'m>(&'m Map);

impl<'m> Header<'m> {
    /// Returns the header of memory that is mapped from its start, for at least [`HEADER_BYTES`].
    pub(super) const fn new(map: &'m Map) -> Self {
        Self(map)
    }

    /// Fills a fresh header. Called by the owner.
    pub(super) fn write(self, maker: &Maker) {
        for (offset, value) in [(8, maker.node), (16, maker.incarnation), (24, maker.number)] {
            self.0.cell(offset).store(value, Ordering::Relaxed);
        }
        self.0.cell(0).store(MAGIC, Ordering::Release);
    }

    /// Returns whether that process created this memory for that purpose.
    pub(super) fn is_by(self, maker: &Maker) -> bool {
        let word = |offset| self.0.cell(offset).load(Ordering::Relaxed);
        self.0.cell(0).load(Ordering::Acquire) == MAGIC
            && Maker { node: word(8), incarnation: word(16), number: word(24) } == *maker
    }

    /// Returns whether the owner has given up the memory. Memory that is still missing does not
    /// count as given up.
    pub(super) fn is_over(self) -> bool {
        self.over().load(Ordering::Acquire) != 0
    }

    /// Marks the memory as given up. Called by the owner.
    pub(super) fn set_over(self) {
        self.over().store(1, Ordering::Release);
    }

    fn over(self) -> &'m AtomicU64 {
        self.0.cell(64)
    }
}
