//! What the processors of a group must have in common, for one to read what another one wrote: the
//! order of bytes. And the cache lines that rows are laid out for. Both are part of the digest.
//!
//! Requirement: LAY-3.

use super::Layout;

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

    const fn other(self) -> Self {
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

    const fn other(self) -> Self {
        match self {
            Self::Bytes64 => Self::Bytes128,
            Self::Bytes128 => Self::Bytes64,
        }
    }
}

/// Why a peer's digest is not this layout's. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum DigestMismatch {
    /// Its layout is another one: members, subgroups, sizes, options or format.
    Layout = 1,
    /// The same layout on a processor with the other order of bytes.
    ByteOrder = 2,
    /// The same layout for cache lines of another size.
    LineSize = 3,
    /// Both differ.
    ByteOrderAndLineSize = 4,
}

impl DigestMismatch {
    /// The stable number of this mismatch.
    #[allow(clippy::as_conversions)]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl core::fmt::Display for DigestMismatch {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Self::Layout => "another layout",
            Self::ByteOrder => "the same layout in the other order of bytes",
            Self::LineSize => "the same layout for cache lines of another size",
            Self::ByteOrderAndLineSize => {
                "the same layout in the other order of bytes, for cache lines of another size"
            }
        })
    }
}

impl core::error::Error for DigestMismatch {}

impl Layout<'_> {
    /// The same for cache lines of another size. It is part of the digest.
    ///
    /// Call it before [`Layout::with_checks`].
    ///
    /// # Errors
    /// A row would be larger than this machine can address.
    pub const fn with_line_size(self, line: LineSize) -> Result<Self, super::LayoutError> {
        let laid_out = Self { line, ..self };
        #[cfg(feature = "views")]
        let laid_out = laid_out.with_measured_columns();
        laid_out.measured()
    }

    /// The size of a cache line that this was laid out for.
    #[must_use]
    pub const fn line_size(&self) -> LineSize {
        self.line
    }

    /// The digest of this layout on a processor with an order of bytes.
    #[must_use]
    pub const fn digest_of(&self, order: ByteOrder) -> u64 {
        self.digest_as(order, self.line)
    }

    /// Whether a peer has this layout, from the digest that it shows; and if not, what differs, as
    /// far as a digest tells.
    ///
    /// # Errors
    /// What differs.
    pub const fn compare_digest(&self, theirs: u64) -> Result<(), DigestMismatch> {
        let (order, line) = (ByteOrder::OWN, self.line);
        if theirs == self.digest_as(order, line) {
            Ok(())
        } else if theirs == self.digest_as(order.other(), line) {
            Err(DigestMismatch::ByteOrder)
        } else if theirs == self.digest_as(order, line.other()) {
            Err(DigestMismatch::LineSize)
        } else if theirs == self.digest_as(order.other(), line.other()) {
            Err(DigestMismatch::ByteOrderAndLineSize)
        } else {
            Err(DigestMismatch::Layout)
        }
    }
}
