//! The cells of a group in a member's row: one cache line.
//!
//! | cell | meaning |
//! |---|---|
//! | `ready` | number of steps since the group began for which this member has posted all receives |
//! | `failed` | reason why the group ended, if it has failed |
//! | `closing` | at the root: the number of messages sent plus one, once it closes; at another member: the same, once all have arrived |
//! | `closed` | at the root: one, once all members have confirmed |
//!
//! Requirements: FLT-2, RDM-4, RDM-6.

use crate::check::Checks;
use crate::fabric::{Kind, Write};
use crate::layout::{CACHE_LINE, CHANNEL_BYTES};
use crate::memory::{OutOfRow, Row, RowWriter};

/// Size in bytes of a group's cells in each member's row.
pub const CELLS_BYTES: usize = CHANNEL_BYTES;

/// The name of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Ready,
    Failed,
    Closing,
    Closed,
}

/// Location of a group's cells in every member's row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    offset: usize,
    checks: Checks,
}

impl Cells {
    /// Creates the cells at an offset, which must be inside every row.
    pub(super) fn new(offset: usize, rows: &[Row<'_>], checks: Checks) -> Result<Self, OutOfRow> {
        let end = offset.checked_add(CELLS_BYTES).ok_or(OutOfRow)?;
        let fits = offset.is_multiple_of(CACHE_LINE) && rows.iter().all(|row| end <= row.bytes());
        if fits { Ok(Self { offset, checks }) } else { Err(OutOfRow) }
    }

    /// Returns the value of a member's cell, or zero if it has no value yet or fails its check.
    pub(super) fn read(self, row: &Row<'_>, name: Name) -> u64 {
        self.checked(row, name).unwrap_or(0)
    }

    /// Returns whether all cells of a member pass their checks.
    pub(super) fn is_readable(self, row: &Row<'_>) -> bool {
        let names = [Name::Ready, Name::Failed, Name::Closing, Name::Closed];
        names.into_iter().all(|name| self.checked(row, name).is_some())
    }

    fn checked(self, row: &Row<'_>, name: Name) -> Option<u64> {
        let cell = row.cell(self.place(name));
        self.checks.unseal(cell.map_or(0, |cell| cell.load()))
    }

    pub(super) fn publish(self, row: RowWriter<'_>, name: Name, value: u64) {
        if let Ok(cell) = row.cell(self.place(name)) {
            cell.publish(self.checks.seal(value));
        }
    }

    /// Returns the write that posts a cell to a peer.
    pub(super) fn write(self, name: Name) -> Write {
        Write::of_row(self.place(name), 8, Kind::Guard)
    }

    fn place(self, name: Name) -> usize {
        let inside = match name {
            Name::Ready => 0,
            Name::Failed => 8,
            Name::Closing => 16,
            Name::Closed => 24,
        };
        self.offset.saturating_add(inside)
    }
}
