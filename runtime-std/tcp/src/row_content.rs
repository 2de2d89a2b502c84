//! A part of a row on its way to a peer, which the kernel takes from where it is.
//!
//! Cells may grow while a part has gone and the rest waits. A reader must not see the one half of a
//! cell as it was and the other as it is: where a part ends within a cell, the whole cell is kept
//! as it was then. No other thread stores in the row between the call that took the part and the
//! copy of the cell: one thread at a time drives the member.

use tramontane_core::memory::OutOfRow;

use super::memory::Rows;

/// How long a cell is.
pub(super) const CELL: usize = 8;

/// Content of a row that has not gone.
#[derive(Debug)]
pub(super) struct RowContent {
    pub(super) rows: Rows,
    pub(super) offset: usize,
    pub(super) length: usize,
    /// If it begins within a cell: that cell, as it was when its start went, or when this was made.
    begun: [u8; CELL],
}

impl RowContent {
    pub(super) fn new(rows: Rows, offset: usize, length: usize) -> Result<Self, OutOfRow> {
        let mut content = Self { rows, offset, length, begun: [0; CELL] };
        content.keep_begun()?;
        Ok(content)
    }

    /// Keeps the cell in whose middle this begins, as it is now.
    fn keep_begun(&mut self) -> Result<(), OutOfRow> {
        let within = self.offset % CELL;
        if within > 0 {
            let rest = (CELL - within).min(self.length);
            let cell = self.rows.content(self.offset - within, within + rest)?;
            self.begun[..cell.len()].copy_from_slice(cell);
        }
        Ok(())
    }

    /// Its bytes in order: those of a cell that was begun, and the others.
    pub(super) fn parts(&self) -> Option<[&[u8]; 2]> {
        let within = self.offset % CELL;
        let rest = if within == 0 { 0 } else { (CELL - within).min(self.length) };
        let begun = self.begun.get(within..within + rest)?;
        Some([begun, self.rows.content(self.offset + rest, self.length - rest).ok()?])
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
