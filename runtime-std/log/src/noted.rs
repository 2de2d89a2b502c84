//! What the owner of a log noted of it in another place, and whether the log is still that one.
//!
//! A disk may come back other than it was: emptied, shortened, damaged at its end, or as an older
//! copy. The log alone cannot tell that from a log that never had more.

use crate::metadata::Content;
use crate::record::Sequence;

/// A note of a log. What it says the log has once had: the log may have had more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The number that tells this log from any other.
    pub log: u64,
    /// How often it was opened to be written.
    pub incarnation: u64,
    /// Its end: all records before it were durable.
    pub end: Sequence,
}

/// Whether a log is the one that was noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// It has all that was noted, or nothing was.
    #[default]
    Whole,
    /// It is that log, and has lost its end: it ends before, or is an older copy.
    Short,
    /// It is another log.
    Another,
}

impl Noted {
    /// How much of a log with that metadata was durable, as far as this tells.
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
