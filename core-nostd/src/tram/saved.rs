//! The record of a durable replica's log, as the host keeps it on its disk (see `disk`).
//!
//! Requirement: TRM-5.

use super::timestamp::Timestamp;

/// The state of a replica's log on its disk, apart from the entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogRecord {
    pub(super) promised: Timestamp,
    pub(super) stamp: Timestamp,
    pub(super) repair: u64,
    pub(super) tail: u64,
    /// Number of entries that were known to be decided.
    pub(super) decided: u64,
    pub(super) begins: u64,
    pub(super) is_voter: bool,
    pub(super) is_gapped: bool,
}

/// A write of the host to its disk: the entries of the log from an index up to the record's
/// [tail](LogRecord::tail), and then the record. A saved entry replaces an earlier one with its
/// index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Unsaved {
    /// Index of the first entry. The log need not have every entry up to the replica's delivered
    /// count.
    pub from: u64,
    /// State of the log after this.
    pub record: LogRecord,
}

/// The log that a replica has on its disk, and the log that it has handed over to be saved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SavedLog {
    pub(super) saved: LogRecord,
    pub(super) handed: LogRecord,
}

impl LogRecord {
    /// Number of cells of a record.
    pub const CELLS: usize = 7;

    /// Returns the record as cells, for the disk.
    #[must_use]
    pub fn cells(&self) -> [u64; Self::CELLS] {
        let flags = u64::from(self.is_voter) | (u64::from(self.is_gapped) << 1);
        let Self { promised, stamp, repair, tail, decided, begins, .. } = *self;
        [promised.cell(), stamp.cell(), repair, tail, decided, begins, flags]
    }

    /// Returns the record with these cells.
    #[must_use]
    pub const fn from_cells(cells: [u64; Self::CELLS]) -> Self {
        let [promised, stamp, repair, tail, decided, begins, flags] = cells;
        Self {
            promised: Timestamp::from_cell(promised),
            stamp: Timestamp::from_cell(stamp),
            repair,
            tail,
            decided,
            begins,
            is_voter: flags & 1 != 0,
            is_gapped: flags & 2 != 0,
        }
    }

    /// Returns whether the replica counted in quorums.
    #[must_use]
    pub const fn is_voter(&self) -> bool {
        self.is_voter
    }

    /// Returns the index after the last entry of the log. Saved entries from this index on are not
    /// part of it.
    #[must_use]
    pub const fn tail(&self) -> u64 {
        self.tail
    }
}
