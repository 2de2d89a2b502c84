//! Properties that the processors of a group must share so that one can read another's writes: the
//! byte order, and the cache line size that rows are laid out for. Both are part of the digest.
//!
//! Requirement: LAY-3.

/// The order of the bytes in a cell. Rows are written in the processor's byte order and never
/// converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ByteOrder {
    /// Lowest byte first.
    Little,
    /// Highest byte first.
    Big,
}

impl ByteOrder {
    /// Byte order of the processor that this code was compiled for.
    pub const OWN: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Little => Self::Big,
            Self::Big => Self::Little,
        }
    }
}

/// The cache line size that rows are laid out for. The parts of a row that need separate cache
/// lines get separate lines of this size. Larger lines in the hardware cost time but break nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum LineSize {
    /// The line size of x86-64 and most ARM processors.
    #[default]
    Bytes64,
    /// The line size of some ARM and POWER processors. A row must begin on a multiple of this size,
    /// as the rows of [`RowStorage`](crate::storage::RowStorage) do.
    Bytes128,
}

impl LineSize {
    /// Returns the size in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bytes64 => 64,
            Self::Bytes128 => 128,
        }
    }

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Bytes64 => Self::Bytes128,
            Self::Bytes128 => Self::Bytes64,
        }
    }
}
