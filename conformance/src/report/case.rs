//! The content of a report: histories, their verdicts and their origin.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::check::{Finding, Verdict};

/// Everything that one invocation judged.
#[derive(Clone, Debug)]
pub struct Run {
    /// The adapter's command, or `None` if only histories were judged.
    pub adapter: Option<String>,
    /// The implementation's own name and version, once reported.
    pub implementation: Option<String>,
    /// The features that the implementation claims.
    pub features: Vec<String>,
    /// One case per history, in order.
    pub cases: Vec<Case>,
    /// The reason why the run did not complete, or `None` if it completed.
    pub cut_short: Option<CutShort>,
}

/// A run that did not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CutShort {
    /// The reason.
    pub why: String,
    /// The scenarios that lack a case, or lack one for some of their rounds.
    pub not_run: Vec<String>,
}

/// One history, or one scenario that produced none.
#[derive(Clone, Debug)]
pub struct Case {
    /// The scenario's name, or the history's file name.
    pub name: String,
    /// One sentence on what the scenario does; empty if only a history was judged.
    pub description: String,
    /// The seed of the plan.
    pub seed: Option<u64>,
    /// The history.
    pub history: Option<PathBuf>,
    /// The command that repeats the case, if that is useful.
    pub again: Option<String>,
    /// The overall result.
    pub status: CaseStatus,
    /// The verdict of the checks, if there was a history to judge.
    pub verdict: Option<Verdict>,
    /// The results of the user's own checks, in the order in which they were named.
    pub own_checks: Vec<OwnCheck>,
    /// The conditions that the scenario had to reach, and whether each was reached.
    pub reached: Vec<(String, bool)>,
    /// Further notes for the reader: for example how nodes were partitioned, or the end of a
    /// member's log.
    pub notes: Vec<String>,
    /// The duration of the scenario, without judging.
    pub took: Duration,
}

impl Case {
    /// Creates a case of this name and status; everything else is empty.
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

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseStatus {
    /// Every required promise that could be judged holds, and the scenario reached its goal.
    Passed,
    /// A required promise is broken.
    Failed,
    /// Nothing is broken, but some promise could not be proved to hold; contains the reason.
    Inconclusive(String),
    /// The implementation does not claim a feature that the scenario needs; contains the feature.
    Unsupported(String),
    /// The driver, the adapter or the history is broken; contains the problem.
    Broken(String),
}

/// The result of one of the user's own checks on a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCheck {
    /// The program's command.
    pub command: String,
    /// The outcome.
    pub outcome: OwnOutcome,
}

/// The outcome of one of the user's own checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnOutcome {
    /// The program found no violation.
    Held,
    /// The program found violations.
    Broken {
        /// Number of violations.
        times: u64,
        /// The first.
        finding: Finding,
    },
    /// The program itself failed; contains the problem.
    Failed(String),
}
