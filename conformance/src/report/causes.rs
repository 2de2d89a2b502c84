//! The broken promises of a run, grouped by cause. One defect may break the same promise in the
//! same way in many cases, on different nodes and with different messages.
//!
//! Two findings have the same cause if they come from the same check, and their sentences differ
//! only in names, that is, in words that contain a digit.

use std::collections::HashMap;

use super::case::Run;
use crate::check::{CheckId, Finding, Outcome, Verdict};

/// Replaces a name.
const NAME: &str = "#";

/// The pattern that findings of one cause share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pattern {
    check: CheckId,
    sentence: String,
}

impl Pattern {
    /// Returns the pattern of a finding.
    pub(super) fn of(check: CheckId, finding: &Finding) -> Self {
        let words = finding.what.split_whitespace();
        let names = words.map(|word| {
            if word.contains(|c: char| c.is_ascii_digit()) {
                // Punctuation at the end of a word is not part of the name.
                let end = word.trim_start_matches(|c| !matches!(c, ',' | ';'));
                format!("{NAME}{end}")
            } else {
                word.to_owned()
            }
        });
        let sentence = names.collect::<Vec<_>>().join(" ");
        // A node's first incarnation is not mentioned in sentences, so later ones are dropped here
        // too.
        Self { check, sentence: sentence.replace(&format!(" (incarnation {NAME}"), "") }
    }
}

/// One cause, over all cases.
#[derive(Debug)]
pub(super) struct Cause<'r> {
    pub(super) check: CheckId,
    /// Number of violations.
    pub(super) times: u64,
    /// The numbers of the cases, in order.
    pub(super) cases: Vec<usize>,
    /// The first finding.
    pub(super) what: &'r str,
}

/// Returns the causes of all broken promises, in order of appearance.
pub(super) fn causes(run: &Run) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    let mut places: HashMap<Pattern, usize> = HashMap::new();
    for (index, case) in run.cases.iter().enumerate() {
        for (check, times, finding) in case.verdict.iter().flat_map(broken) {
            let place = *places.entry(Pattern::of(check, finding)).or_insert(causes.len());
            match causes.get_mut(place) {
                Some(cause) => {
                    cause.times = cause.times.saturating_add(times);
                    cause.cases.push(index);
                }
                None => {
                    causes.push(Cause { check, times, cases: vec![index], what: &finding.what });
                }
            }
        }
    }
    causes
}

/// Iterates over the findings of a verdict, with the check and the number of violations of each.
pub(super) fn broken(verdict: &Verdict) -> impl Iterator<Item = (CheckId, u64, &Finding)> {
    verdict.judgements.iter().filter_map(|judgement| match &judgement.outcome {
        Outcome::Broken { times, finding } => Some((judgement.check, *times, finding)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::{case, finding, run, verdict};
    use super::*;

    fn broken_case(name: &str, what: &str) -> super::super::case::Case {
        case(name, None, verdict(&[(CheckId::Agreement, finding(what, &[1]))]))
    }

    #[test]
    fn findings_that_differ_in_names_share_a_cause() {
        let cases = (0..37).map(|index| {
            let start = if index % 2 == 0 { "" } else { " (incarnation 2)" };
            let what = format!("n{}{start} delivered n2/1/{index}, and n0 did not", index % 5);
            broken_case(&format!("case-{index}"), &what)
        });
        let run = run(cases.collect());
        let causes = causes(&run);
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!((causes[0].times, causes[0].cases.len()), (3 * 37, 37));
        assert_eq!(causes[0].what, "n0 delivered n2/1/0, and n0 did not");
    }

    #[test]
    fn findings_with_different_sentences_are_separate_causes() {
        let order = verdict(&[(
            CheckId::TotalOrder,
            finding("n0 delivered n2/1/30, and n1 did not", &[1]),
        )]);
        let run = run(vec![
            broken_case("a", "n0 delivered n2/1/30, and n1 did not"),
            broken_case("b", "n0 delivered n2/1/30 after it had left"),
            case("c", None, order),
            case("d", None, verdict(&[])),
        ]);
        let told: Vec<_> = causes(&run).into_iter().map(|cause| cause.cases).collect();
        assert_eq!(told, [[0], [1], [2]]);
    }
}
