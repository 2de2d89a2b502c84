//! Comparison of a peer's layout with the local layout, as far as digests reveal it.
//!
//! Requirement: LAY-3.

use super::configuration::LayoutError;
use super::map::Layout;
use super::processor::{ByteOrder, LineSize};

/// Reason why a peer's digest differs from that of this layout. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum DigestMismatch {
    /// The layouts differ in members, subgroups, sizes, options or format.
    Layout = 1,
    /// The layouts are equal, but the peer's processor has the other byte order.
    ByteOrder = 2,
    /// The layouts are equal except for the cache line size.
    LineSize = 3,
    /// Both differ.
    ByteOrderAndLineSize = 4,
}

impl DigestMismatch {
    /// Returns the stable number of this mismatch.
    #[allow(clippy::as_conversions)]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl core::fmt::Display for DigestMismatch {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Self::Layout => "a different layout",
            Self::ByteOrder => "the same layout in the other byte order",
            Self::LineSize => "the same layout for another cache line size",
            Self::ByteOrderAndLineSize => {
                "the same layout in the other byte order, for another cache line size"
            }
        })
    }
}

impl core::error::Error for DigestMismatch {}

impl Layout<'_> {
    /// Sets the cache line size, which is part of the digest.
    ///
    /// Call it before [`Layout::with_checks`].
    ///
    /// # Errors
    /// Fails if a row would be larger than this machine can address.
    pub const fn with_line_size(self, line: LineSize) -> Result<Self, LayoutError> {
        let laid_out = Self { line, ..self };
        #[cfg(feature = "views")]
        let laid_out = laid_out.with_measured_columns();
        laid_out.measured()
    }

    /// Returns the cache line size that this group was laid out for.
    #[must_use]
    pub const fn line_size(&self) -> LineSize {
        self.line
    }

    /// Returns the digest of this layout on a processor with the given byte order.
    #[must_use]
    pub const fn digest_of(&self, order: ByteOrder) -> u64 {
        self.digest_as(order, self.line)
    }

    /// Compares the digest that a peer publishes with the digest of this layout. On a mismatch,
    /// returns the difference as far as a digest reveals it.
    ///
    /// # Errors
    /// The difference.
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
