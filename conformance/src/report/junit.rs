//! JUnit XML, for continuous integration.
//!
//! The file has one suite per case, with one test per check and a test `reached` for the case as a
//! whole. The error of `reached` says why a case without a broken check still did not pass. The
//! file therefore has a failure or an error if any case failed, is broken or is inconclusive. A
//! broken recommended promise is skipped with its finding, because it does not fail the case.

use std::time::Duration;

use quick_junit::{
    NonSuccessKind, Property, Report, SerializeError, TestCase, TestCaseStatus, TestSuite,
};

use super::case::{Case, CaseStatus, OwnCheck, OwnOutcome, Run};
use super::printable::printable;
use super::quotes::Quotes;
use super::words;
use crate::check::{Check, Finding, Judgement, Outcome, Strength};

/// The name of the test for a case as a whole.
const WHOLE: &str = "reached";

/// Length limit of untrusted text that is shown whole.
const TEXT_CHARACTERS_MAX: usize = 2000;

/// Returns the XML text.
///
/// # Errors
/// Fails with the error of the XML writer, although no such error is known.
pub fn render(run: &Run) -> Result<String, SerializeError> {
    let mut report = Report::new(shown(run.implementation.as_deref().unwrap_or("histories")));
    report.set_time(run.cases.iter().map(whole_time).sum());
    report.add_test_suites(run.cases.iter().map(suite));
    report.to_string()
}

fn whole_time(case: &Case) -> Duration {
    case.took + case.verdict.as_ref().map(|verdict| verdict.took).unwrap_or_default()
}

fn suite(case: &Case) -> TestSuite {
    let mut suite = TestSuite::new(shown(&case.name));
    suite.set_time(whole_time(case));
    let seed = case.seed.map(|seed| Property::new("seed", seed.to_string()));
    let history = case
        .history
        .as_deref()
        .map(|path| Property::new("history", shown(&path.to_string_lossy())));
    suite.add_properties(seed.into_iter().chain(history));
    if !case.notes.is_empty() {
        suite.set_system_out(
            case.notes.iter().map(|note| shown(note)).collect::<Vec<_>>().join("\n"),
        );
    }
    suite.add_test_case(test(case, WHOLE, whole(case)));
    let quotes = Quotes::of(case);
    for judgement in case.verdict.iter().flat_map(|verdict| &verdict.judgements) {
        suite.add_test_case(test(case, judgement.check.check().name, checked(judgement, &quotes)));
    }
    for own in &case.own_checks {
        suite.add_test_case(test(case, &shown(&own.command), own_checked(own)));
    }
    suite
}

/// Returns the test status of one of the user's own checks.
fn own_checked(own: &OwnCheck) -> TestCaseStatus {
    let (kind, word, message) = match &own.outcome {
        OwnOutcome::Held => return TestCaseStatus::success(),
        OwnOutcome::Broken { finding, .. } => (NonSuccessKind::Failure, "own", &finding.what),
        OwnOutcome::Failed(why) => (NonSuccessKind::Error, "broken", why),
    };
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(word).set_message(shown(message));
    status
}

fn test(case: &Case, name: &str, status: TestCaseStatus) -> TestCase {
    let mut test = TestCase::new(name, status);
    test.set_classname(shown(&case.name));
    if name == WHOLE {
        test.set_time(whole_time(case));
    }
    test
}

fn whole(case: &Case) -> TestCaseStatus {
    match &case.status {
        // A broken required promise fails its own test.
        CaseStatus::Passed | CaseStatus::Failed => TestCaseStatus::success(),
        CaseStatus::Unsupported(what) => skipped(format!("unsupported: {}", shown(what))),
        CaseStatus::Inconclusive(why) => error("inconclusive", why, case),
        CaseStatus::Broken(how) => error("broken", how, case),
    }
}

fn error(kind: &str, why: &str, case: &Case) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    let missed = case.reached.iter().filter(|(_, reached)| !reached);
    let missed: Vec<String> =
        missed.map(|(goal, _)| format!("not reached: {}", shown(goal))).collect();
    status.set_type(kind).set_message(shown(why)).set_description(missed.join("\n"));
    status
}

fn checked(judgement: &Judgement, quotes: &Quotes) -> TestCaseStatus {
    let check = judgement.check.check();
    match &judgement.outcome {
        Outcome::Held { .. } => TestCaseStatus::success(),
        Outcome::Inconclusive(why) => skipped(format!("inconclusive: {}", shown(why))),
        Outcome::NotJudged(why) => skipped(format!("not judged: {}", shown(why))),
        Outcome::Broken { times, finding } => {
            let text = details(check, *times, finding, quotes);
            let what = shown(&finding.what);
            if check.strength == Strength::Should {
                let mut status = skipped(format!("a recommended promise is broken: {what}"));
                status.set_description(text);
                return status;
            }
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(check.name).set_message(what).set_description(text);
            status
        }
    }
}

fn skipped(why: String) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(why);
    status
}

/// Describes the promise, what happened, and the records that show it.
fn details(check: &Check, times: u64, finding: &Finding, quotes: &Quotes) -> String {
    let mut lines = vec![
        format!("promised: {} [{}]", check.sentence, check.source),
        format!("happened: {}", shown(&finding.what)),
        format!("broken {}", words::times(times)),
    ];
    for witness in &finding.witness {
        let culprit = if witness.culprit { " (culprit)" } else { "" };
        lines.push(format!("line {}: {}{culprit}", witness.line, witness.role));
        lines.extend(quotes.line(witness.line).map(|quote| format!("  {}", shown(quote))));
    }
    lines.join("\n")
}

fn shown(text: &str) -> String {
    printable(text, TEXT_CHARACTERS_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{case, everything, run, verdict};
    use super::*;
    use crate::check::CheckId;

    fn parsed(run: &Run) -> Report {
        Report::deserialize_from_str(&render(run).expect("it can be written"))
            .expect("it can be read")
    }

    fn status<'a>(report: &'a Report, case: &str, test: &str) -> &'a TestCaseStatus {
        let suites = report.test_suites.iter().filter(|suite| suite.name.as_str() == case);
        let mut tests = suites.flat_map(|suite| &suite.test_cases);
        &tests.find(|one| one.name.as_str() == test).expect("the test is there").status
    }

    fn is_kind(status: &TestCaseStatus, wanted: NonSuccessKind) -> bool {
        matches!(status, TestCaseStatus::NonSuccess { kind, .. } if *kind == wanted)
    }

    #[test]
    fn junit_report_round_trips() {
        let report = parsed(&everything());
        let of = |test| status(&report, "failed-case", test);
        assert!(matches!(of("integrity-once"), TestCaseStatus::Success { .. }));
        assert!(matches!(of("durable-kept"), TestCaseStatus::Skipped { .. }));
        assert!(matches!(of("view-majority"), TestCaseStatus::Skipped { .. }));
        assert!(is_kind(of("total-order"), NonSuccessKind::Failure));
        let TestCaseStatus::NonSuccess { ty, description: Some(text), .. } = of("total-order")
        else {
            panic!("it has a text");
        };
        assert_eq!(ty.as_ref().map(quick_junit::XmlString::as_str), Some("total-order"));
        for part in
            ["promised: Two members", "line 9: what this line shows (culprit)", "\"t_ns\":80"]
        {
            assert!(text.as_str().contains(part), "{part}: {}", text.as_str());
        }
        assert!(is_kind(status(&report, "open-case", WHOLE), NonSuccessKind::Error));
        assert!(matches!(
            status(&report, "unsupported-case", WHOLE),
            TestCaseStatus::Skipped { .. }
        ));
        let classes = report.test_suites.iter().flat_map(|suite| {
            suite.test_cases.iter().map(|test| (test.classname.clone(), suite.name.clone()))
        });
        assert!(classes.into_iter().all(|(class, suite)| class == Some(suite)));
    }

    #[test]
    fn junit_report_fails_if_the_run_fails() {
        let report = parsed(&everything());
        assert!(
            report.failures == 2 && report.errors == 3,
            "{} {}",
            report.failures,
            report.errors
        );
        let report = parsed(&run(vec![case("fine", None, verdict(&[]))]));
        assert_eq!((report.failures, report.errors, report.tests), (0, 0, CheckId::ALL.len() + 1));
    }
}
