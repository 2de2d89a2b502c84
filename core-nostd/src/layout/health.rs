//! What health adds to a layout: cells in the header of each row, which is there in any case.
//!
//! Requirements: HLT-1, LAY-1.

use super::map::Layout;

/// A cell of a row's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum HeaderCell {
    /// Which life of the row's owner this is; zero before it shows one.
    Incarnation,
    /// It grows as long as the owner lives.
    Heartbeat,
    /// The rank of the member because of which the owner has stopped, plus one; zero as long as it
    /// goes on.
    StoppedBecauseOf,
}

impl HeaderCell {
    /// Bytes of all of them, from the start of the row.
    pub const BYTES: usize = 24;

    /// Bytes from the start of the row.
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
    /// The same where each member shows its incarnation and its heartbeat, for a
    /// [`Monitor`](crate::health::Monitor). Rows grow by nothing; it is part of the digest.
    #[must_use]
    pub const fn with_health(self) -> Self {
        Self { health: true, ..self }
    }

    /// Whether members show their incarnation and their heartbeat.
    #[must_use]
    pub const fn has_health(&self) -> bool {
        self.health
    }
}
