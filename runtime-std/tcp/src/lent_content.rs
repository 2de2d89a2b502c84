//! A part of the own row, or of an own region, on its way to a peer: the kernel takes it from where
//! it is.
//!
//! Cells may grow while a part has gone and the rest waits. A reader must not see the one half of a
//! cell as it was and the other as it is: where a part ends within a cell, the whole cell is kept
//! as it was then. No other thread stores there between the call that took the part and the copy of
//! the cell: one thread at a time drives the member.

use tramontane_core::memory::OutOfRow;

use super::memory::Rows;
use super::regions::RegionMemory;

/// How long a cell is.
pub(super) const CELL: usize = 8;

/// Memory of this member that is sent from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The own row of a view.
    Row(Rows),
    /// A region.
    Region(RegionMemory),
}

impl Source {
    pub(super) fn content(&self, offset: usize, length: usize) -> Result<&[u8], OutOfRow> {
        match self {
            Self::Row(rows) => rows.content(offset, length),
            Self::Region(memory) => memory.content(offset, length),
        }
    }

    /// Whether it is the row of that view.
    pub(super) fn is_of(&self, view: &Rows) -> bool {
        matches!(self, Self::Row(rows) if rows.is(view))
    }
}

/// Content that has not gone.
#[derive(Debug)]
pub(super) struct LentContent {
    pub(super) source: Source,
    pub(super) offset: usize,
    pub(super) length: usize,
    /// If it begins within a cell: that cell, as it was when its start went, or when this was made.
    begun: [u8; CELL],
}

impl LentContent {
    pub(super) fn new(source: Source, offset: usize, length: usize) -> Result<Self, OutOfRow> {
        let mut content = Self { source, offset, length, begun: [0; CELL] };
        content.keep_begun()?;
        Ok(content)
    }

    /// Keeps the cell in whose middle this begins, as it is now.
    fn keep_begun(&mut self) -> Result<(), OutOfRow> {
        let within = self.offset % CELL;
        if within > 0 {
            let rest = (CELL - within).min(self.length);
            let cell = self.source.content(self.offset - within, within + rest)?;
            self.begun[..cell.len()].copy_from_slice(cell);
        }
        Ok(())
    }

    /// Its bytes in order: those of a cell that was begun, and the others.
    pub(super) fn parts(&self) -> Option<[&[u8]; 2]> {
        let within = self.offset % CELL;
        let rest = if within == 0 { 0 } else { (CELL - within).min(self.length) };
        let begun = self.begun.get(within..within + rest)?;
        Some([begun, self.source.content(self.offset + rest, self.length - rest).ok()?])
    }

    /// So many of its bytes have gone.
    pub(super) fn pass(&mut self, count: usize) -> Result<(), OutOfRow> {
        let cell_before = self.offset / CELL;
        let was_begun = !self.offset.is_multiple_of(CELL);
        self.offset += count;
        self.length -= count;
        let is_same_cell = was_begun && cell_before == self.offset / CELL;
        if count > 0 && self.length > 0 && !is_same_cell { self.keep_begun() } else { Ok(()) }
    }
}
