//! Addition to a layout for health monitoring: cells in the header that every row has anyway.
//!
//! Requirements: HLT-1, LAY-1.

use super::map::Layout;

/// A cell of a row's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum HeaderCell {
    /// Incarnation of the row's owner; zero until the owner publishes it.
    Incarnation,
    /// Count that grows as long as the owner is alive.
    Heartbeat,
    /// Rank of the member that caused the owner to stop, plus one; zero while the owner runs.
    StoppedBecauseOf,
}

impl HeaderCell {
    /// Total size of the cells in bytes, from the start of the row.
    pub const BYTES: usize = 24;

    /// Returns the cell's offset in bytes from the start of the row.
    #[must_use]
    pub const fn offset(self) -> usize {
        match self {
            Self::Incarnation => 0,
            Self::Heartbeat => 8,
            Self::StoppedBecauseOf => 16,
        }
    }
}

const _: () = assert!(HeaderCell::BYTES <= super::BLOCK, "the header of a row is one block");

impl Layout<'_> {
    /// Adds each member's incarnation and heartbeat, for a [`Monitor`](crate::health::Monitor).
    /// Rows do not grow. The setting is part of the digest.
    #[must_use]
    pub const fn with_health(self) -> Self {
        Self { health: true, ..self }
    }

    /// Returns whether members publish their incarnation and their heartbeat.
    #[must_use]
    pub const fn has_health(&self) -> bool {
        self.health
    }
}
