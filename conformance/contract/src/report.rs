//! Clauses, their findings, and the list of verdicts that a run returns.

use std::fmt;

/// A violation of a clause by a fabric: the expected and the observed behaviour, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach(pub String);

/// The finding of a clause without a breach. The reasons are for the reader of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It holds.
    Holds,
    /// The testable part of the clause is met on this fabric; the reason says which part cannot be
    /// tested.
    InPart(&'static str),
    /// The clause does not apply to this fabric, or cannot be provoked on it.
    NotApplicable(&'static str),
}

/// The result of a clause's check.
pub type ClauseResult = Result<Finding, Breach>;

/// Ends a check with a breach, unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($says:tt)+) => {
        if !$condition {
            return Err($crate::Breach(format!($($says)+)));
        }
    };
}
pub(super) use ensure;

/// Defines a module's `clauses` from the sentence, id, source and check of each clause.
macro_rules! clauses {
    ($visibility:vis $bench:ident
     $($(#[doc = $says:literal])+ $id:literal, $source:literal => $check:expr;)*) => {
        /// Returns all clauses of this module, in the order in which they are run.
        #[must_use]
        $visibility fn clauses<T: $bench>() -> Vec<$crate::Clause<T>> {
            vec![$($crate::Clause {
                id: $id,
                says: concat!($($says),+).trim_ascii(),
                source: $source,
                check: $check,
            },)*]
        }
    };
}
pub(super) use clauses;

/// A property of every fabric.
#[derive(Clone, Copy, Debug)]
pub struct Clause<B> {
    /// The stable name.
    pub id: &'static str,
    /// The property, in one sentence.
    pub says: &'static str,
    /// The source: the trait's documentation, the design, or a requirement.
    pub source: &'static str,
    /// Checks the property on a group that no member has opened yet.
    pub check: fn(&mut B) -> ClauseResult,
}

/// The verdict on a clause for a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// See [`Finding`].
    Found(Finding),
    /// The fabric violates the clause.
    Broken(Breach),
}

/// A clause with its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportEntry {
    /// The clause's id.
    pub id: &'static str,
    /// The property, in one sentence.
    pub says: &'static str,
    /// The source.
    pub source: &'static str,
    /// The verdict.
    pub verdict: Verdict,
}

/// All verdicts of a run, in the order of the clauses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One entry per clause that was run.
    pub entries: Vec<ReportEntry>,
}

impl Report {
    /// Checks a clause, and adds the verdict.
    pub(super) fn add<B>(&mut self, clause: &Clause<B>, bench: &mut B) {
        let verdict = match (clause.check)(bench) {
            Ok(finding) => Verdict::Found(finding),
            Err(breach) => Verdict::Broken(breach),
        };
        let Clause { id, says, source, .. } = *clause;
        self.entries.push(ReportEntry { id, says, source, verdict });
    }

    /// Returns the verdict on a clause, if it was run.
    #[must_use]
    pub fn verdict(&self, id: &str) -> Option<&Verdict> {
        self.entries.iter().find(|entry| entry.id == id).map(|entry| &entry.verdict)
    }

    /// Iterates over the violated clauses.
    pub fn broken(&self) -> impl Iterator<Item = &ReportEntry> {
        self.entries.iter().filter(|entry| matches!(entry.verdict, Verdict::Broken(_)))
    }

    /// Iterates over the ids of the clauses that do not apply.
    pub fn not_applicable(&self) -> impl Iterator<Item = &'static str> {
        let is_silent = |entry: &&ReportEntry| {
            matches!(entry.verdict, Verdict::Found(Finding::NotApplicable(_)))
        };
        self.entries.iter().filter(is_silent).map(|entry| entry.id)
    }

    /// Asserts, in tests, that no clause is violated.
    ///
    /// # Panics
    /// Panics if a clause is violated; the message contains the whole list.
    #[track_caller]
    pub fn assert_kept(&self) {
        assert!(self.broken().next().is_none(), "the contract is broken:\n{self}");
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds => out.write_str("holds"),
            Self::InPart(reason) => write!(out, "partly holds: {reason}"),
            Self::NotApplicable(reason) => write!(out, "not applicable: {reason}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(finding) => finding.fmt(out),
            Self::Broken(Breach(how)) => write!(out, "BROKEN: {how}"),
        }
    }
}

/// Writes one line per clause, with the sentence and source of a violated one.
impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.entries.iter().map(|entry| entry.id.len()).max().unwrap_or(0);
        for ReportEntry { id, says, source, verdict } in &self.entries {
            writeln!(out, "{id:width$}  {verdict}")?;
            if matches!(verdict, Verdict::Broken(_)) {
                writeln!(out, "{:width$}  ({says} [{source}])", "")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_lists_clauses_and_explains_broken_ones() {
        let clause = |id, check| Clause { id, says: "It does.", source: "SRC-1", check };
        let mut report = Report::default();
        report.add(&clause("good", |(): &mut ()| Ok(Finding::Holds)), &mut ());
        report
            .add(&clause("quiet", |(): &mut ()| Ok(Finding::NotApplicable("no reason"))), &mut ());
        report.assert_kept();
        report.add(&clause("bad", |(): &mut ()| Err(Breach("it does not".to_owned()))), &mut ());
        assert_eq!(report.broken().map(|entry| entry.id).collect::<Vec<_>>(), ["bad"]);
        assert_eq!(report.not_applicable().collect::<Vec<_>>(), ["quiet"]);
        let text = report.to_string();
        assert!(text.contains("good   holds\nquiet  not applicable: no reason\n"), "{text}");
        assert!(text.contains("bad    BROKEN: it does not\n       (It does. [SRC-1])\n"), "{text}");
    }
}
