//! What is wrong with the bytes of a log, and where.

use std::fmt;

use crate::record::Sequence;

/// A place of a log that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, by its name in the log's folder.
    pub file: String,
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// What is damaged.
    pub what: Damaged,
}

/// What is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damaged {
    /// The header of a segment. The log knows what it should be.
    SegmentHeader,
    /// One of the marks of a batch, or what fills the batch up. The log knows what it should be.
    Mark,
    /// Blocks between two batches that belong to neither.
    Blocks,
    /// A whole segment is not there.
    Segment,
    /// Records, from the first to before the end. A peer has them.
    Records {
        /// The first that is damaged.
        first: Sequence,
        /// The one after the last.
        end: Sequence,
    },
    /// The snapshot. A peer has one.
    Snapshot,
    /// One of the two copies of the metadata. The other copy has it.
    Metadata,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: ", self.file, self.offset)?;
        match self.what {
            Damaged::SegmentHeader => f.write_str("the segment's header is damaged"),
            Damaged::Mark => f.write_str("a batch's header, trailer or filling is damaged"),
            Damaged::Blocks => f.write_str("blocks that belong to no batch"),
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
