//! The status of one history, from its checks, and of a run, from its histories.
//!
//! Only this module decides which results count. Invariants:
//! - only a broken required promise fails; a broken recommended promise is reported without
//!   changing the status;
//! - a run passes only if its promises were shown to hold.

use std::fmt;

use serde::Serialize;

use super::case::{Case, CaseStatus, OwnOutcome, Run};
use crate::check::{Outcome, Strength, Verdict};

impl CaseStatus {
    /// Returns the status of a history, judged only by its checks.
    #[must_use]
    pub fn of(verdict: &Verdict) -> Self {
        let musts =
            || verdict.judgements.iter().filter(|one| one.check.check().strength == Strength::Must);
        if musts().any(|one| matches!(one.outcome, Outcome::Broken { .. })) {
            return Self::Failed;
        }
        let open = musts().find_map(|one| match &one.outcome {
            Outcome::Inconclusive(why) => Some(format!("{}: {why}", one.check)),
            _ => None,
        });
        if let Some(why) = open {
            return Self::Inconclusive(why);
        }
        if let Some(cut) = &verdict.cut {
            return Self::Inconclusive(format!(
                "judged up to the point where it is truncated: {cut}"
            ));
        }
        if !musts().any(|one| matches!(one.outcome, Outcome::Held { .. })) {
            return Self::Inconclusive(
                "the history contains nothing that a required check could judge".to_owned(),
            );
        }
        Self::Passed
    }

    /// Returns the stable word for the status in reports.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive(_) => "inconclusive",
            Self::Unsupported(_) => "unsupported",
            Self::Broken(_) => "broken",
        }
    }

    /// Returns the reason, if the status has one.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Passed | Self::Failed => None,
            Self::Inconclusive(why) | Self::Unsupported(why) | Self::Broken(why) => Some(why),
        }
    }
}

/// The status of a whole run. A worse status is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunStatus {
    /// All required promises hold, in every case that could be run.
    Passed,
    /// Nothing is broken, but some promise could not be proved to hold.
    Inconclusive,
    /// The driver, the adapter or a history is broken, but no required promise.
    Broken,
    /// A required promise is broken. Other problems do not change this.
    Failed,
}

impl RunStatus {
    /// Returns the stable exit status.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::Inconclusive => 2,
            Self::Broken => 3,
        }
    }

    /// Returns the stable word for the status in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Inconclusive => "inconclusive",
            Self::Broken => "broken",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl Run {
    /// Returns the status of the worst case. Unsupported cases do not count, but a run without any
    /// passed case is inconclusive.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        let worst = self.cases.iter().filter_map(|case| match case.status {
            CaseStatus::Passed => Some(RunStatus::Passed),
            CaseStatus::Failed => Some(RunStatus::Failed),
            CaseStatus::Inconclusive(_) => Some(RunStatus::Inconclusive),
            CaseStatus::Broken(_) => Some(RunStatus::Broken),
            CaseStatus::Unsupported(_) => None,
        });
        // Cases that were not run were not shown to hold.
        let cut_short = self.cut_short.as_ref().map(|_| RunStatus::Inconclusive);
        worst.chain(cut_short).max().unwrap_or(RunStatus::Inconclusive)
    }
}

/// The number of checks of a case by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of checks that hold.
    pub held: usize,
    /// Number of broken required promises.
    #[serde(rename = "broken_musts")]
    pub broken: usize,
    /// Number of broken recommended promises.
    pub broken_shoulds: usize,
    /// Number of undecided checks.
    pub inconclusive: usize,
    /// Number of checks without anything to judge.
    pub not_judged: usize,
}

impl Tally {
    /// Counts the outcomes of a case.
    #[must_use]
    pub fn of(case: &Case) -> Self {
        let mut tally = Self::default();
        for judgement in case.verdict.iter().flat_map(|verdict| &verdict.judgements) {
            let count = match (&judgement.outcome, judgement.check.check().strength) {
                (Outcome::Held { .. }, _) => &mut tally.held,
                (Outcome::Broken { .. }, Strength::Must) => &mut tally.broken,
                (Outcome::Broken { .. }, Strength::Should) => &mut tally.broken_shoulds,
                (Outcome::Inconclusive(_), _) => &mut tally.inconclusive,
                (Outcome::NotJudged(_), _) => &mut tally.not_judged,
            };
            *count += 1;
        }
        for own in &case.own_checks {
            let count = match own.outcome {
                OwnOutcome::Held => &mut tally.held,
                OwnOutcome::Broken { .. } => &mut tally.broken,
                OwnOutcome::Failed(_) => &mut tally.inconclusive,
            };
            *count += 1;
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{case, finding, run, verdict, without_history};
    use super::*;
    use crate::check::CheckId;
    use crate::history::{HistoryError, Trouble};

    fn open(why: &str) -> Outcome {
        Outcome::Inconclusive(why.to_owned())
    }

    #[test]
    fn only_violating_a_required_promise_fails_case() {
        let broken = || finding("broken", &[1]);
        for id in CheckId::ALL {
            let status = CaseStatus::of(&verdict(&[(*id, broken())]));
            match id.check().strength {
                Strength::Must => assert_eq!(status, CaseStatus::Failed, "{id}"),
                Strength::Should => assert_eq!(status, CaseStatus::Passed, "{id}"),
            }
        }
        let both =
            verdict(&[(CheckId::TotalOrder, broken()), (CheckId::Validity, open("unfinished"))]);
        assert_eq!(CaseStatus::of(&both), CaseStatus::Failed);
    }

    #[test]
    fn undecided_promise_makes_the_case_inconclusive() {
        let status = CaseStatus::of(&verdict(&[(CheckId::Validity, open("n1 is unfinished"))]));
        assert_eq!(status, CaseStatus::Inconclusive("validity: n1 is unfinished".to_owned()));
        let should = CaseStatus::of(&verdict(&[(CheckId::Quiescence, open("n1 is unfinished"))]));
        assert_eq!(should, CaseStatus::Passed);

        let nothing: Vec<_> =
            CheckId::ALL.iter().map(|id| (*id, Outcome::NotJudged("nothing".to_owned()))).collect();
        assert_eq!(CaseStatus::of(&verdict(&nothing)).word(), "inconclusive");

        let mut cut = verdict(&[]);
        cut.cut = Some(HistoryError { line: 7, trouble: Trouble::Cut });
        assert!(CaseStatus::of(&cut).reason().is_some_and(|why| why.contains("line 7")));
    }

    #[test]
    fn run_has_the_status_of_its_worst_case() {
        let passed = || case("passed", None, verdict(&[]));
        let failed =
            || case("failed", None, verdict(&[(CheckId::TotalOrder, finding("broken", &[1]))]));
        let with = |status| without_history("other", status);
        let inconclusive = || with(CaseStatus::Inconclusive(String::new()));
        let unsupported = || with(CaseStatus::Unsupported(String::new()));
        let broken = || with(CaseStatus::Broken(String::new()));
        for (cases, exit_status) in [
            (vec![passed(), passed()], 0),
            (vec![passed(), unsupported()], 0),
            (vec![passed(), inconclusive()], 2),
            (vec![inconclusive(), broken(), passed()], 3),
            (vec![broken(), failed(), inconclusive()], 1),
            (vec![unsupported()], 2),
            (vec![], 2),
        ] {
            let words: Vec<&str> = cases.iter().map(|case| case.status.word()).collect();
            let words = words.join(", ");
            assert_eq!(run(cases).status().exit_status(), exit_status, "{words}");
        }
    }

    #[test]
    fn tallies_count_each_check_once() {
        let case = case(
            "mixed",
            None,
            verdict(&[
                (CheckId::TotalOrder, finding("broken", &[1])),
                (CheckId::Quiescence, finding("broken", &[1])),
                (CheckId::Validity, open("unfinished")),
            ]),
        );
        let tally = Tally::of(&case);
        assert_eq!(
            (tally.broken, tally.broken_shoulds, tally.inconclusive, tally.not_judged),
            (1, 1, 1, 0)
        );
        assert_eq!(tally.held, CheckId::ALL.len() - 3);
    }
}
