//! The memory of one view at one member: its own row, and its copies of the others'.
//!
//! # Invariants
//! - The bytes of a copy are stored, and read by the node, by the one thread that has the member's turn.
//! - Of the own row, the bytes of posted writes are read by that thread too, inside calls of the fabric. Cells are
//!   stored by it alone; the payload of a posted slot is stored by nobody until every member has delivered it (SMC-2).
//!
//! So no byte is read or stored here while another thread stores it.

use std::sync::Arc;

use tramontane_core::ids::Rank;
use tramontane_core::layout::{CACHE_LINE, Layout};
use tramontane_core::memory::{Line, OutOfRow, Row, RowWriter};

use crate::member::Memory;

/// All rows of a view, as one member has them. Fresh for each view, and all zero at first (VIE-11).
#[derive(Debug)]
pub struct Rows {
    own: Rank,
    digest: u64,
    rows: Vec<Box<[Line]>>,
}

impl Rows {
    /// The rows of a layout, for the member of rank `own`.
    ///
    /// # Panics
    /// If there is no such member.
    #[must_use]
    pub fn new(layout: &Layout<'_>, own: Rank) -> Arc<Self> {
        let ranks = (0..).map(Rank).take(layout.members());
        let row_bytes: Vec<usize> = ranks.map(|rank| layout.row_bytes(rank)).collect();
        Self::with_sizes(own, layout.digest(), &row_bytes)
    }

    /// Rows of so many bytes each, by rank, rounded up to whole cache lines. `digest` is the same where the layout is:
    /// a peer is ready only with rows of the same.
    ///
    /// # Panics
    /// If `own` is none of them.
    #[must_use]
    pub fn with_sizes(own: Rank, digest: u64, row_bytes: &[usize]) -> Arc<Self> {
        assert!(own.index() < row_bytes.len(), "the own row is one of the rows");
        let row = |bytes: &usize| (0..bytes.div_ceil(CACHE_LINE)).map(|_| Line::new()).collect();
        Arc::new(Self { own, digest, rows: row_bytes.iter().map(row).collect() })
    }

    /// Whose rows they are.
    #[must_use]
    pub const fn own(&self) -> Rank {
        self.own
    }

    /// The digest of their layout.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// The own row.
    #[must_use]
    pub fn row(&self) -> RowWriter<'_> {
        RowWriter::from_lines(&self.rows[self.own.index()])
    }

    /// All rows, in rank order.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<'_>> {
        self.rows.iter().map(|lines| Row::from_lines(lines)).collect()
    }

    /// These rows as a member's memory, which keeps them.
    #[must_use]
    pub fn lend(self: &Arc<Self>) -> Memory {
        let keeper = Arc::<Self>::clone(self);
        // SAFETY: boxed, so at one address while the keeper lives, which is these rows.
        unsafe { Memory::new(&self.rows(), self.row(), keeper) }
    }

    /// How many bytes a member's row has.
    pub(super) fn row_bytes(&self, rank: Rank) -> usize {
        self.rows.get(rank.index()).map_or(0, |lines| size_of_val::<[Line]>(lines))
    }

    /// Bytes of the own row, to be sent.
    pub(super) fn content(&self, offset: usize, length: usize) -> Result<&[u8], OutOfRow> {
        let base = checked(&self.rows[self.own.index()], offset, length)?;
        // SAFETY: in range by the check; nobody stores there meanwhile, by the invariants of this module.
        Ok(unsafe { std::slice::from_raw_parts(base, length) })
    }

    /// Where bytes of another member's row are to land. The caller looks at nothing else of that row while it has
    /// this.
    #[allow(
        clippy::mut_from_ref,
        reason = "rows are atomics in disguise, and one thread has the turn"
    )]
    pub(super) fn landing(
        &self,
        rank: Rank,
        offset: usize,
        length: usize,
    ) -> Result<&mut [u8], OutOfRow> {
        if rank == self.own {
            return Err(OutOfRow);
        }
        let base = checked(self.rows.get(rank.index()).ok_or(OutOfRow)?, offset, length)?;
        // SAFETY: in range by the check; neither read nor stored by anybody else meanwhile, by the invariants of this
        // module; the memory is made of atomics, so it may change behind a shared reference.
        Ok(unsafe { std::slice::from_raw_parts_mut(base, length) })
    }
}

/// The address of a range, if it lies in the row.
pub(super) fn checked(lines: &[Line], offset: usize, length: usize) -> Result<*mut u8, OutOfRow> {
    let end = offset.checked_add(length).ok_or(OutOfRow)?;
    if end > size_of_val(lines) {
        return Err(OutOfRow);
    }
    let base = Row::from_lines(lines).base();
    // SAFETY: not past the end of the same slice, by the check above.
    Ok(unsafe { base.add(offset) }.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_outside_a_row_are_refused() {
        let rows = Rows::with_sizes(Rank(0), 1, &[64, 100]);
        assert_eq!(
            (rows.row_bytes(Rank(0)), rows.row_bytes(Rank(1)), rows.row_bytes(Rank(2))),
            (64, 128, 0)
        );
        assert_eq!(rows.content(60, 4).map(<[u8]>::len), Ok(4));
        for (offset, length) in [(60, 5), (65, 0), (usize::MAX, 1), (0, usize::MAX)] {
            assert!(rows.content(offset, length).is_err());
            assert!(rows.landing(Rank(1), offset.saturating_add(64), length).is_err());
        }
        assert!(rows.landing(Rank(0), 0, 8).is_err(), "the own row is nobody else's to write");
        assert!(rows.landing(Rank(2), 0, 0).is_err());
    }

    #[test]
    fn what_lands_is_seen_in_the_row() {
        let rows = Rows::with_sizes(Rank(0), 1, &[64, 64]);
        rows.landing(Rank(1), 8, 8).expect("in the row").copy_from_slice(&7_u64.to_ne_bytes());
        assert_eq!(rows.rows()[1].cell(8).expect("a cell").load(), 7);
    }
}
