//! The unit in which row memory is declared.
//!
//! Requirement: MEM-1.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::layout::CACHE_LINE;

/// One cache line of cells: the unit in which a partition declares row memory.
///
/// ```
/// use tramontane_core::memory::{Line, RowWriter};
/// static ROW: [Line; 4] = [const { Line::new() }; 4];
/// assert_eq!(RowWriter::from_lines(&ROW).bytes(), 256);
/// ```
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Line([AtomicU64; 8]);

const _: () = assert!(size_of::<Line>() == CACHE_LINE);

impl Line {
    /// Returns a line of zeros.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 8])
    }

    /// Zeroes the line.
    pub(crate) fn clear(&self) {
        // bound: the cells of a line
        for cell in &self.0 {
            cell.store(0, Ordering::Relaxed);
        }
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

/// A range that is outside its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OutOfRow;
