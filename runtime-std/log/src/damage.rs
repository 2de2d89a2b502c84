//! The kinds of damage to the bytes of a log, and their locations.

use std::fmt;

use crate::record::Sequence;

/// A damaged part of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The name of the file in the log's folder.
    pub file: String,
    /// The offset in the file at which the damage begins, in bytes.
    pub offset: u64,
    /// The damaged item.
    pub what: Damaged,
}

/// The kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damaged {
    /// The header of a segment, whose correct content the log knows.
    SegmentHeader,
    /// A mark of a batch, or the batch's padding. The log knows the correct content.
    Mark,
    /// Blocks between two batches that belong to neither.
    Blocks,
    /// A whole segment is missing.
    Segment,
    /// Records, from the first up to but excluding the end. A peer has them.
    Records {
        /// The first damaged record.
        first: Sequence,
        /// The record after the last damaged one.
        end: Sequence,
    },
    /// The snapshot. A peer has one.
    Snapshot,
    /// One of the two copies of the metadata. The other copy is intact.
    Metadata,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: ", self.file, self.offset)?;
        match self.what {
            Damaged::SegmentHeader => f.write_str("the segment's header is damaged"),
            Damaged::Mark => f.write_str("a batch's header, trailer or padding is damaged"),
            Damaged::Blocks => f.write_str("some blocks do not belong to any batch"),
            Damaged::Segment => f.write_str("the segment is missing"),
            Damaged::Records { first, end } if first.plus(1) == end => {
                write!(f, "record {first} is damaged")
            }
            Damaged::Records { first, end } => {
                write!(f, "records {first} to {} are damaged", end.0.saturating_sub(1))
            }
            Damaged::Snapshot => f.write_str("the snapshot is damaged"),
            Damaged::Metadata => f.write_str("one copy of the metadata is damaged"),
        }
    }
}
