//! What the judge says.

use std::time::Duration;

use serde::Serialize;

use super::registry::CheckId;
use crate::history::HistoryError;

/// What the judge says of one history.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// One for each check, in the order of [`CheckId::ALL`].
    pub judgements: Vec<Judgement>,
    /// Records read.
    pub events: u64,
    /// `ev`s that this version does not know, each with the line of its first and how many there
    /// were.
    pub unknown: Vec<(String, u64, u64)>,
    /// Where the history ends in the middle of a line, or is otherwise cut short of what was begun.
    pub cut: Option<HistoryError>,
    /// How long judging took, reading included.
    pub took: Duration,
    /// The most memory that the process held at once, in bytes, where the system reports it.
    pub memory_bytes_max: Option<u64>,
}

impl Verdict {
    /// What was said of a check.
    ///
    /// # Panics
    /// Never: there is a judgement for each check.
    #[must_use]
    pub fn of(&self, id: CheckId) -> &Judgement {
        self.judgements
            .iter()
            .find(|judgement| judgement.check == id)
            .expect("each check is judged")
    }
}

/// What the judge says of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The check.
    pub check: CheckId,
    /// What came out.
    pub outcome: Outcome,
}

/// What came out of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds, and the history gave it this much to judge: never 0.
    Held {
        /// Deliveries, messages, views or whatever the check is about.
        judged: u64,
    },
    /// It is broken.
    Broken {
        /// In how many places. A count, not a list: one fault can break a promise a million times.
        times: u64,
        /// The first, with what shows it.
        finding: Finding,
    },
    /// The history ends before it could be decided: nodes neither ended nor were killed.
    Inconclusive(String),
    /// The history gave it nothing to judge, or what it builds on is broken already.
    NotJudged(String),
}

/// How a promise was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// One sentence, with the nodes' and messages' own names.
    pub what: String,
    /// The fewest records that show it, in the order in which to read them.
    pub witness: Vec<Witness>,
}

/// A record that shows something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// Its line in the history, from 1.
    pub line: u64,
    /// What it shows.
    pub role: &'static str,
    /// Whether it is the record that should not be, or the last one before what should have been.
    pub culprit: bool,
}
