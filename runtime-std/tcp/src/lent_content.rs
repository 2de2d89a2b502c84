//! A part of a row, or of a local region, on its way to a peer. The kernel takes it
//! directly from memory.
//!
//! Cells may grow while one part has been sent and the rest is waiting. A reader must not see half
//! of a cell with an old value and half with a new one. So if a part ends within a cell, the whole
//! cell is kept as it was at that time. No other thread stores there between the call that sent the
//! part and the copy of the cell, because only one thread at a time drives the member.

use tramontane_core::ids::Rank;
use tramontane_core::memory::OutOfRow;

use super::memory::Rows;
use super::regions::RegionMemory;

/// The size of a cell, in bytes.
pub(super) const CELL: usize = 8;

/// The memory of this member from which content is sent.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The local row of a view, or the copy of a row that is passed on.
    Row(Rows, Rank),
    /// A region.
    Region(RegionMemory),
}

impl Source {
    pub(super) fn content(&self, offset: usize, length: usize) -> Result<&[u8], OutOfRow> {
        match self {
            Self::Row(rows, owner) => rows.content(*owner, offset, length),
            Self::Region(memory) => memory.content(offset, length),
        }
    }

    /// Returns whether this is a row of that view.
    pub(super) fn is_of(&self, view: &Rows) -> bool {
        matches!(self, Self::Row(rows, _) if rows.is(view))
    }
}

/// Content that has not been sent yet.
#[derive(Debug)]
pub(super) struct LentContent {
    pub(super) source: Source,
    pub(super) offset: usize,
    pub(super) length: usize,
    /// If the content begins within a cell: that cell, as it was when its first bytes were sent, or
    /// when this was created.
    begun: [u8; CELL],
}

impl LentContent {
    pub(super) fn new(source: Source, offset: usize, length: usize) -> Result<Self, OutOfRow> {
        let mut content = Self { source, offset, length, begun: [0; CELL] };
        content.keep_begun()?;
        Ok(content)
    }

    /// Keeps the cell in which the content begins, with its current value.
    fn keep_begun(&mut self) -> Result<(), OutOfRow> {
        let within = self.offset % CELL;
        if within > 0 {
            let rest = (CELL - within).min(self.length);
            let cell = self.source.content(self.offset - within, within + rest)?;
            self.begun[..cell.len()].copy_from_slice(cell);
        }
        Ok(())
    }

    /// Returns the bytes in order: the rest of a partly sent cell, and the others.
    pub(super) fn parts(&self) -> Option<[&[u8]; 2]> {
        let within = self.offset % CELL;
        let rest = if within == 0 { 0 } else { (CELL - within).min(self.length) };
        let begun = self.begun.get(within..within + rest)?;
        Some([begun, self.source.content(self.offset + rest, self.length - rest).ok()?])
    }

    /// Notes that `count` bytes have been sent.
    pub(super) fn pass(&mut self, count: usize) -> Result<(), OutOfRow> {
        let cell_before = self.offset / CELL;
        let was_begun = !self.offset.is_multiple_of(CELL);
        self.offset += count;
        self.length -= count;
        let is_same_cell = was_begun && cell_before == self.offset / CELL;
        if count > 0 && self.length > 0 && !is_same_cell { self.keep_begun() } else { Ok(()) }
    }
}
