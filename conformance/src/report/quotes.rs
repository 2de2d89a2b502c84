//! The lines of a history that a report quotes.
//!
//! The judge names lines by number only, so that it holds no text of long histories. A report
//! therefore reads the file once more. If the file has changed meanwhile, or is a pipe that cannot
//! be read twice, the report has no quotes, but never fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use super::case::{Case, OwnOutcome};
use crate::check::{Finding, Outcome, Verdict};
use crate::history::LINE_BYTES_MAX;

/// The requested lines that exist, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Quotes(BTreeMap<u64, String>);

impl Quotes {
    /// Reads the lines that the findings of a case name.
    pub(super) fn of(case: &Case) -> Self {
        let own = case.own_checks.iter().filter_map(|own| match &own.outcome {
            OwnOutcome::Broken { finding, .. } => Some(finding),
            _ => None,
        });
        let found = case.verdict.iter().flat_map(findings).chain(own);
        Self::of_lines(case.history.as_deref(), found.flat_map(lines_of).collect())
    }

    /// Reads the lines with these numbers.
    fn of_lines(history: Option<&Path>, wanted: BTreeSet<u64>) -> Self {
        let Some(last) = wanted.last().copied() else {
            return Self::default();
        };
        let mut quotes = BTreeMap::new();
        if let Some(mut lines) = history.and_then(Lines::open) {
            while let Some((number, text)) = lines.next_line() {
                if wanted.contains(&number) {
                    quotes.insert(number, text.to_owned());
                }
                if number >= last {
                    break;
                }
            }
        }
        Self(quotes)
    }

    /// Returns a line, excluding its line feed.
    pub(super) fn line(&self, number: u64) -> Option<&str> {
        self.0.get(&number).map(String::as_str)
    }
}

/// Iterates over the findings, in the order of the checks.
pub(super) fn findings(verdict: &Verdict) -> impl Iterator<Item = &Finding> {
    verdict.judgements.iter().filter_map(|judgement| match &judgement.outcome {
        Outcome::Broken { finding, .. } => Some(finding),
        _ => None,
    })
}

fn lines_of(finding: &Finding) -> impl Iterator<Item = u64> {
    finding.witness.iter().map(|witness| witness.line)
}

/// Reads a history's lines one by one, in memory bounded by the longest one.
pub(super) struct Lines {
    stream: BufReader<File>,
    buffer: Vec<u8>,
    text: String,
    number: u64,
}

impl Lines {
    /// Opens a history that can be read again.
    pub(super) fn open(history: &Path) -> Option<Self> {
        // Opening a pipe a second time would wait for a writer that never comes.
        let regular = std::fs::metadata(history).is_ok_and(|metadata| metadata.is_file());
        let file = regular.then(|| File::open(history).ok()).flatten()?;
        let stream = BufReader::with_capacity(1 << 17, file);
        Some(Self { stream, buffer: Vec::new(), text: String::new(), number: 0 })
    }

    /// Returns the next line with its number, counted from 1, or `None` at the end or if the file
    /// is not a history.
    pub(super) fn next_line(&mut self) -> Option<(u64, &str)> {
        self.buffer.clear();
        let mut limited = (&mut self.stream).take(LINE_BYTES_MAX as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.buffer).ok()?;
        if read == 0 || read > LINE_BYTES_MAX {
            return None;
        }
        self.number += 1;
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(self.buffer.trim_ascii()));
        Some((self.number, &self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_history_lines_have_matching_line_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        std::fs::write(&path, "one\n\nthree\r\n\u{fffd}\nfive").expect("written");
        let mut lines = Lines::open(&path).expect("opened");
        let mut seen = Vec::new();
        while let Some((number, text)) = lines.next_line() {
            seen.push((number, text.to_owned()));
        }
        let expected = [(1, "one"), (2, ""), (3, "three"), (4, "\u{fffd}"), (5, "five")];
        assert_eq!(seen, expected.map(|(number, text)| (number, text.to_owned())));
    }

    #[test]
    fn unreadable_history_has_no_quotes() {
        assert!(Lines::open(Path::new("/dev/null")).is_none());
        assert!(Lines::open(Path::new("/nowhere/at/all")).is_none());
    }
}
