//! The owner's note about a log, stored elsewhere, and the check of whether the log still matches
//! it.
//!
//! The content of a disk may change: it may be empty, shortened, damaged at its end, or an older
//! copy. The log alone cannot distinguish that from a log that never had more.

use crate::metadata::StoredMetadata;
use crate::record::Sequence;

/// A note about a log, which once had at least the noted records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// A number that distinguishes this log from every other log.
    pub log: u64,
    /// The number of times that the log had been opened for writing.
    pub incarnation: u64,
    /// The end of the log. All records before it were durable.
    pub end: Sequence,
}

/// Whether a log matches its note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// The log has everything that was noted, or there is no note.
    #[default]
    Whole,
    /// The same log, but it ends earlier or is an older copy.
    Short,
    /// Another log.
    Another,
}

impl Noted {
    /// Returns how much of a log with that metadata was durable, as far as the note says.
    pub(crate) fn durable(self, content: &StoredMetadata) -> Sequence {
        if self.log == content.log { self.end } else { Sequence::ZERO }
    }

    pub(crate) fn fit(self, content: &StoredMetadata, end: Sequence) -> Fit {
        if self.log != content.log {
            Fit::Another
        } else if self.incarnation > content.incarnation || self.end > end {
            Fit::Short
        } else {
            Fit::Whole
        }
    }
}
