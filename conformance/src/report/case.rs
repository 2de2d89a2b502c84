//! What a report is about: histories with their verdicts, and how they came about.

use std::path::PathBuf;
use std::time::Duration;

use crate::check::{Finding, Verdict};

/// All that one invocation judged.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was judged: the adapter's command, or nothing where only a history was.
    pub adapter: Option<String>,
    /// The implementation's own name and version, once it said so.
    pub implementation: Option<String>,
    /// The features that it claims.
    pub features: Vec<String>,
    /// One for each history, in order.
    pub cases: Vec<Case>,
    /// That it did not come to its end, if so.
    pub cut_short: Option<CutShort>,
}

/// A run that did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutShort {
    /// What came before its end.
    pub why: String,
    /// The scenarios of which there is no case, or not one for each round.
    pub not_run: Vec<String>,
}

/// One history, or one scenario that made none.
#[derive(Clone, Debug)]
pub struct Case {
    /// The scenario's name, or the history's file name.
    pub name: String,
    /// One sentence on what the scenario does; empty for a history alone.
    pub description: String,
    /// The seed of the plan.
    pub seed: Option<u64>,
    /// The history.
    pub history: Option<PathBuf>,
    /// The command that plays it again, where that may be wanted.
    pub again: Option<String>,
    /// How it came out, all in all.
    pub status: CaseStatus,
    /// What the checks say, where there was a history to judge.
    pub verdict: Option<Verdict>,
    /// What checks of the user's own say, in the order in which they were named.
    pub own_checks: Vec<OwnCheck>,
    /// What the scenario had to reach, and whether it did.
    pub reached: Vec<(String, bool)>,
    /// Anything that the reader should know: by which means nodes were parted, what a member's log
    /// said.
    pub notes: Vec<String>,
    /// How long the scenario ran, judging apart.
    pub took: Duration,
}

impl Case {
    /// A case of that name and status of which no more is known.
    #[must_use]
    pub fn new(name: String, status: CaseStatus) -> Self {
        Self {
            name,
            description: String::new(),
            seed: None,
            history: None,
            again: None,
            status,
            verdict: None,
            own_checks: Vec::new(),
            reached: Vec::new(),
            notes: Vec::new(),
            took: Duration::ZERO,
        }
    }
}

/// How a case came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseStatus {
    /// Every must that could be judged holds, and the scenario reached what it is for.
    Passed,
    /// A must is broken.
    Failed,
    /// Nothing is broken, but it cannot be said that all holds; why.
    Inconclusive(String),
    /// The implementation does not claim what the scenario needs; what that is.
    Unsupported(String),
    /// The driver, the adapter or the history is broken; how.
    Broken(String),
}

/// What a check of the user's own says of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCheck {
    /// The program's command.
    pub command: String,
    /// What came out.
    pub outcome: OwnOutcome,
}

/// What came out of a check of the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnOutcome {
    /// It found nothing.
    Held,
    /// It found something.
    Broken {
        /// How often.
        times: u64,
        /// The first.
        finding: Finding,
    },
    /// The program is broken; how.
    Failed(String),
}
