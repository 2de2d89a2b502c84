//! What a clause is, what it may find, and the list of verdicts that a run ends with.

use std::fmt;

/// How a fabric breaks a clause: what was expected and what was seen, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach(pub String);

/// What a clause finds where it finds no breach. Reasons are for the reader of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It holds.
    Holds,
    /// What of it can be looked at on this fabric holds; the reason says what cannot.
    InPart(&'static str),
    /// It says nothing about this fabric, or cannot be provoked on it.
    NotApplicable(&'static str),
}

/// What a clause's check gives.
pub type Outcome = Result<Finding, Breach>;

/// Ends a check with a breach, unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($says:tt)+) => {
        if !$condition {
            return Err($crate::Breach(format!($($says)+)));
        }
    };
}
pub(super) use ensure;

/// Makes a module's `clauses`: of each clause its sentence, its id, its source and its check.
macro_rules! clauses {
    ($visibility:vis $bench:ident
     $($(#[doc = $says:literal])+ $id:literal, $source:literal => $check:expr;)*) => {
        /// All clauses of this module, in the order in which they are run.
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

/// One property that every fabric has.
#[derive(Clone, Copy, Debug)]
pub struct Clause<B> {
    /// Its lasting name.
    pub id: &'static str,
    /// What it says, in a sentence.
    pub says: &'static str,
    /// Where it comes from: the seam's documentation, the design, or a requirement.
    pub source: &'static str,
    /// Puts it to the question, on a group that nobody opened yet.
    pub check: fn(&mut B) -> Outcome,
}

/// What became of a clause on a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// See [`Finding`].
    Found(Finding),
    /// The fabric breaks it.
    Broken(Breach),
}

/// A clause with its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The clause's id.
    pub id: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What became of it.
    pub verdict: Verdict,
}

/// All verdicts of a run, in the order of the clauses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One a clause that was run.
    pub entries: Vec<Entry>,
}

impl Report {
    /// Puts a clause to the question, and notes the verdict.
    pub(super) fn add<B>(&mut self, clause: &Clause<B>, bench: &mut B) {
        let verdict = match (clause.check)(bench) {
            Ok(finding) => Verdict::Found(finding),
            Err(breach) => Verdict::Broken(breach),
        };
        let Clause { id, says, source, .. } = *clause;
        self.entries.push(Entry { id, says, source, verdict });
    }

    /// The verdict on a clause, if it was run.
    #[must_use]
    pub fn verdict(&self, id: &str) -> Option<&Verdict> {
        self.entries.iter().find(|entry| entry.id == id).map(|entry| &entry.verdict)
    }

    /// The clauses that are broken.
    pub fn broken(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| matches!(entry.verdict, Verdict::Broken(_)))
    }

    /// The ids of the clauses that say nothing here.
    pub fn not_applicable(&self) -> impl Iterator<Item = &'static str> {
        let is_silent =
            |entry: &&Entry| matches!(entry.verdict, Verdict::Found(Finding::NotApplicable(_)));
        self.entries.iter().filter(is_silent).map(|entry| entry.id)
    }

    /// For tests: nothing is broken.
    ///
    /// # Panics
    /// With the whole list, if something is.
    #[track_caller]
    pub fn assert_kept(&self) {
        assert!(self.broken().next().is_none(), "the contract is broken:\n{self}");
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds => out.write_str("holds"),
            Self::InPart(reason) => write!(out, "holds in part: {reason}"),
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

/// One line a clause; one that is broken brings its sentence and its source.
impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.entries.iter().map(|entry| entry.id.len()).max().unwrap_or(0);
        for Entry { id, says, source, verdict } in &self.entries {
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
    fn a_report_lists_every_clause_and_says_what_a_broken_one_asks() {
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
