//! The overall result in one sentence.

use super::case::{CaseStatus, CutShort, Run};
use super::printable::printable;
use super::status::{RunStatus, Tally};
use super::words::counted;

/// Returns the sentence, the same in every report.
pub(super) fn conclude(run: &Run) -> String {
    let cases = run.cases.len() as u64;
    let count = |wanted: fn(&CaseStatus) -> bool| {
        run.cases.iter().filter(|case| wanted(&case.status)).count() as u64
    };
    let main = match run.status() {
        RunStatus::Failed => {
            let musts = run.cases.iter().map(|case| Tally::of(case).broken as u64).sum();
            let are = if musts == 1 { "is" } else { "are" };
            let place = match cases {
                1 => String::new(),
                _ => format!(
                    ", in {} of {cases} cases",
                    count(|status| *status == CaseStatus::Failed)
                ),
            };
            format!("{} {are} broken{place}", counted(musts, "required promise"))
        }
        RunStatus::Broken => {
            let broken = count(|status| matches!(status, CaseStatus::Broken(_)));
            format!(
                "{broken} of {} could not be judged, because the harness, an adapter or a history \
                 is broken",
                counted(cases, "case")
            )
        }
        RunStatus::Inconclusive if cases == 0 => "there was nothing to judge".to_owned(),
        RunStatus::Inconclusive => {
            let passed = count(|status| *status == CaseStatus::Passed);
            format!(
                "no required promise is broken, but only {passed} of {} passed",
                counted(cases, "case")
            )
        }
        RunStatus::Passed => {
            let passed = count(|status| *status == CaseStatus::Passed);
            format!(
                "every required promise that could be judged holds in {}",
                counted(passed, "case")
            )
        }
    };
    format!("{main}{}{}{}", others(run), shoulds(run), cut_short(run))
}

/// Describes a run that was cut short, which proves less than a complete one.
fn cut_short(run: &Run) -> String {
    let Some(CutShort { why, not_run }) = &run.cut_short else { return String::new() };
    let why = printable(why, WHY_CHARACTERS_MAX);
    format!(
        "; the run was cut short ({why}), and {} were not run",
        counted(not_run.len() as u64, "scenario")
    )
}

/// Length limit of a reason that is shown whole.
const WHY_CHARACTERS_MAX: usize = 400;

/// Counts the cases that the status does not mention.
fn others(run: &Run) -> String {
    let mut text = String::new();
    let status = run.status();
    for (word, spoken_of) in
        [("broken", RunStatus::Broken), ("inconclusive", RunStatus::Inconclusive)]
    {
        let number = run.cases.iter().filter(|case| case.status.word() == word).count();
        if number > 0 && status != spoken_of {
            text.push_str(&format!(", {number} {word}"));
        }
    }
    match run.cases.iter().filter(|case| matches!(case.status, CaseStatus::Unsupported(_))).count()
    {
        0 => text,
        number => format!("{text}, {number} unsupported"),
    }
}

/// Counts broken recommended promises. They do not change the status, so the sentence has to
/// mention them.
fn shoulds(run: &Run) -> String {
    match run.cases.iter().map(|case| Tally::of(case).broken_shoulds as u64).sum() {
        0 => String::new(),
        1 => "; one recommended promise is broken".to_owned(),
        many => format!("; {many} recommended promises are broken"),
    }
}
