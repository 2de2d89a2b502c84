//! The findings of one check so far.
//!
//! Invariants: broken overrides inconclusive, inconclusive overrides held, and held overrides not
//! judged; of several findings, the one with the lowest line is kept, independent of their order.

use super::verdict::{Finding, Outcome, Witness};

/// One check's counts and finding.
#[derive(Debug, Default)]
pub(super) struct Tally {
    cases: u64,
    times: u64,
    first: Option<(u64, Finding)>,
    doubt: Option<(u64, String)>,
}

impl Tally {
    /// Counts cases that could be judged.
    pub(super) fn cases(&mut self, count: u64) {
        self.cases = self.cases.saturating_add(count);
    }

    /// Records that the promise is broken `times` times, first on this line.
    pub(super) fn breach(&mut self, times: u64, line: u64, finding: impl FnOnce() -> Finding) {
        self.times = self.times.saturating_add(times);
        if self.first.as_ref().is_none_or(|(first, _)| line < *first) {
            self.first = Some((line, finding()));
        }
    }

    /// Records that a case is undecided. The line only determines which doubt is reported.
    pub(super) fn doubt(&mut self, line: u64, reason: impl FnOnce() -> String) {
        if self.doubt.as_ref().is_none_or(|(first, _)| line < *first) {
            self.doubt = Some((line, reason()));
        }
    }

    /// Adds another tally.
    pub(super) fn absorb(&mut self, other: Self) {
        self.cases(other.cases);
        if let Some((line, finding)) = other.first {
            self.breach(other.times, line, || finding);
        }
        if let Some((line, reason)) = other.doubt {
            self.doubt(line, || reason);
        }
    }

    /// Adds another tally of the same cases, and uses its finding if that comes first.
    pub(super) fn prefer(&mut self, other: Self) {
        if let Some((line, finding)) = other.first {
            self.breach(0, line, || finding);
        }
    }

    /// Returns whether the promise is broken.
    pub(super) fn is_broken(&self) -> bool {
        self.times > 0
    }

    /// Returns the outcome. If there was nothing to judge, `nothing` says what the history lacks.
    pub(super) fn outcome(self, nothing: &str) -> Outcome {
        match (self.first, self.doubt) {
            (Some((_, finding)), _) => Outcome::Broken { times: self.times, finding },
            (None, Some((_, reason))) => Outcome::Inconclusive(reason),
            (None, None) if self.cases > 0 => Outcome::Held { judged: self.cases },
            (None, None) => Outcome::NotJudged(nothing.to_owned()),
        }
    }
}

/// Builds a finding from a sentence and the records that prove it. Forgotten records have line 0
/// and are omitted.
pub(super) fn finding(what: String, witness: impl IntoIterator<Item = Witness>) -> Finding {
    Finding { what, witness: witness.into_iter().filter(|witness| witness.line > 0).collect() }
}

/// Returns a witness: a record that supports the finding.
pub(super) fn shows(line: u64, role: &'static str) -> Witness {
    Witness { line, role, culprit: false }
}

/// Returns the culprit: the record that should not exist, or the last one before the missing
/// record.
pub(super) fn blames(line: u64, role: &'static str) -> Witness {
    Witness { line, role, culprit: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(what: &str) -> Finding {
        finding(what.to_owned(), [blames(3, "it"), shows(0, "forgotten")])
    }

    #[test]
    fn violation_takes_precedence_and_names_lowest_line() {
        let mut tally = Tally::default();
        tally.cases(4);
        tally.doubt(1, || "undecided".to_owned());
        tally.breach(2, 9, || found("later"));
        tally.breach(1, 5, || found("sooner"));
        assert_eq!(tally.outcome(""), Outcome::Broken { times: 3, finding: found("sooner") });
    }

    #[test]
    fn check_holds_only_if_something_was_judged() {
        assert_eq!(Tally::default().outcome("no views"), Outcome::NotJudged("no views".to_owned()));
        let mut tally = Tally::default();
        tally.cases(1);
        assert_eq!(tally.outcome("no views"), Outcome::Held { judged: 1 });
    }
}
