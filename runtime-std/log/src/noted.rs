//! The owner's note of a log, stored elsewhere, and whether the log still matches it.
//!
//! A disk may return changed: emptied, shortened, damaged at its end, or as an older copy. The log
//! alone cannot distinguish that from a log that never had more.

use crate::metadata::Content;
use crate::record::Sequence;

/// A note of a log. The log once had at least the noted records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Number that distinguishes this log from any other.
    pub log: u64,
    /// Number of times that it was opened for writing.
    pub incarnation: u64,
    /// End of the log: all records before it were durable.
    pub end: Sequence,
}

/// Whether a log matches its note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// The log has everything that was noted, or there is no note.
    #[default]
    Whole,
    /// The same log, but shortened: it ends earlier, or is an older copy.
    Short,
    /// Another log.
    Another,
}

impl Noted {
    /// Returns how much of a log with that metadata was durable, as far as the note tells.
    pub(crate) fn durable(self, content: &Content) -> Sequence {
        if self.log == content.log { self.end } else { Sequence::ZERO }
    }

    pub(crate) fn fit(self, content: &Content, end: Sequence) -> Fit {
        if self.log != content.log {
            Fit::Another
        } else if self.incarnation > content.incarnation || self.end > end {
            Fit::Short
        } else {
            Fit::Whole
        }
    }
}
