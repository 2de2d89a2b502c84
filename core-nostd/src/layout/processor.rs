//! What the processors of a group must have in common, for one to read what another one wrote: the
//! order of bytes. And the cache lines that rows are laid out for. Both are part of the digest.
//!
//! Requirement: LAY-3.

/// The order of the bytes of a cell. Rows are written as the processor has them, and nobody turns
/// them around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ByteOrder {
    /// The lowest byte first.
    Little,
    /// The highest byte first.
    Big,
}

impl ByteOrder {
    /// That of the processor for which this was compiled.
    pub const OWN: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Little => Self::Big,
            Self::Big => Self::Little,
        }
    }
}

/// The size of a cache line, as far as rows are laid out for it. What stands on lines of its own
/// does so for this size. Lines that are larger cost time and break nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum LineSize {
    /// x86-64, and most of ARM's.
    #[default]
    Bytes64,
    /// Some of ARM's and of POWER's. A row begins on a multiple of it: those of
    /// [`RowStorage`](crate::storage::RowStorage) do.
    Bytes128,
}

impl LineSize {
    /// The size in bytes.
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
