//! The verdict of the judge.

use std::time::Duration;

use serde::Serialize;

use super::registry::CheckId;
use crate::history::HistoryError;

/// The verdict on one history.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// One judgement per check, in the order of [`CheckId::ALL`].
    pub judgements: Vec<Judgement>,
    /// Records read.
    pub events: u64,
    /// Unknown `ev` values, each with its first line and its count.
    pub unknown: Vec<(String, u64, u64)>,
    /// The reason why the history is incomplete, for example because it ends in the middle of a
    /// line.
    pub cut: Option<HistoryError>,
    /// The time that judging took, including reading.
    pub took: Duration,
    /// The peak memory of the process in bytes, if the system reports it.
    pub memory_bytes_max: Option<u64>,
}

impl Verdict {
    /// Returns the judgement of a check.
    ///
    /// # Panics
    /// Never panics, because there is a judgement for each check.
    #[must_use]
    pub fn of(&self, id: CheckId) -> &Judgement {
        self.judgements
            .iter()
            .find(|judgement| judgement.check == id)
            .expect("each check is judged")
    }
}

/// The judgement of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The check.
    pub check: CheckId,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The promise holds, and the history had cases to judge.
    Held {
        /// Number of cases, never 0: deliveries, messages, views or whatever the check counts.
        judged: u64,
    },
    /// The promise is broken.
    Broken {
        /// Number of violations. This is a count, not a list, because one fault can break a promise
        /// a million times.
        times: u64,
        /// The first violation, with the records that prove it.
        finding: Finding,
    },
    /// The history ends before the check could be decided: some nodes neither ended nor were
    /// killed.
    Inconclusive(String),
    /// The history had no case to judge, or a check on which this one depends is broken.
    NotJudged(String),
}

/// The way in which a promise was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// One sentence with the names of the nodes and messages.
    pub what: String,
    /// The smallest set of records that proves the violation, in reading order.
    pub witness: Vec<Witness>,
}

/// A record that supports a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// The record's line in the history, counted from 1.
    pub line: u64,
    /// The record's role in the finding.
    pub role: &'static str,
    /// Whether this is the record that should not exist, or the last one before the missing record.
    pub culprit: bool,
}
