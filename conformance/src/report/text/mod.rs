//! The report for people at a terminal.
//!
//! Styles are written as escape sequences. The caller's stream strips them if they would not be
//! shown.

mod finding;
mod table;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::case::{Case, CaseStatus, OwnCheck, OwnOutcome, Run};
use super::causes::{Pattern, causes};
use super::printable::{printable, shortened};
use super::quotes::Quotes;
use super::status::{RunStatus, Tally};
use super::words;
use crate::check::{Outcome, Strength, Verdict};
use table::{Cell, Table};

/// Length limit of untrusted text that is shown whole.
const TEXT_CHARACTERS_MAX: usize = 400;

/// Length limit of a command that is shown whole.
const COMMAND_CHARACTERS_MAX: usize = 4096;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const OPEN: Style = AnsiColor::Yellow.on_default();
const FAINT: Style = Style::new().dimmed();
const STRONG: Style = Style::new().bold();

/// Writes the report.
///
/// # Errors
/// Fails with the error of the stream.
pub fn write(run: &Run, out: &mut impl Write) -> io::Result<()> {
    implementation(run, out)?;
    summary(run, out)?;
    by_cause(run, out)?;
    let mut shown = Shown::default();
    for case in run.cases.iter().filter(|case| run.cases.len() == 1 || has_details(case)) {
        details(case, &mut shown, out)?;
    }
    conclusion(run, out)
}

/// The causes that were shown with their witnesses, each with the name of the case.
type Shown<'r> = HashMap<Pattern, &'r str>;

/// Writes one line per cause, regardless of the number of cases with this cause.
fn by_cause(run: &Run, out: &mut impl Write) -> io::Result<()> {
    let causes = causes(run);
    if causes.iter().all(|cause| cause.cases.len() == 1) {
        return Ok(());
    }
    for cause in causes {
        let check = cause.check.check();
        let style = if check.strength == Strength::Must { BAD } else { OPEN };
        let (times, cases) = (words::times(cause.times), cause.cases.len() as u64);
        let first = cause.cases.first().and_then(|index| run.cases.get(*index));
        let first = first.map(|case| shortened(&case.name, 60)).unwrap_or_default();
        let what = printable(cause.what, TEXT_CHARACTERS_MAX);
        writeln!(
            out,
            "{style}✗ {}{style:#} is broken {times} in {}, first in {first}: {what}",
            check.name,
            words::counted(cases, "case"),
        )?;
    }
    writeln!(out)
}

/// Writes what was judged, unless it was only a history.
fn implementation(run: &Run, out: &mut impl Write) -> io::Result<()> {
    let Some(adapter) = &run.adapter else {
        return Ok(());
    };
    let name = run.implementation.as_deref().unwrap_or("an implementation without a name");
    let adapter = printable(adapter, TEXT_CHARACTERS_MAX);
    writeln!(out, "{STRONG}{}{STRONG:#}, by {adapter}", printable(name, TEXT_CHARACTERS_MAX))?;
    if !run.features.is_empty() {
        writeln!(out, "claims {}", printable(&run.features.join(", "), TEXT_CHARACTERS_MAX))?;
    }
    writeln!(out)
}

/// Writes one line per case.
fn summary(run: &Run, out: &mut impl Write) -> io::Result<()> {
    if run.cases.is_empty() {
        return Ok(());
    }
    let driven = run.cases.iter().any(|case| !case.took.is_zero());
    let mut table = Table::default();
    let mut heading = vec![Cell::text("case"), Cell::text("result")];
    heading
        .extend(["hold", "broken", "open", "not judged", "events", "judged in"].map(Cell::number));
    heading.extend(driven.then(|| Cell::number("ran for")));
    table.row(heading.into_iter().map(|cell| cell.styled(FAINT)));
    for case in &run.cases {
        table.row(summary_row(case, driven));
    }
    writeln!(out, "{table}")
}

fn summary_row(case: &Case, driven: bool) -> Vec<Cell> {
    let tally = Tally::of(case);
    let (style, symbol) = style_of(&case.status);
    let number = |count: usize, style| {
        let text = if count == 0 { "-".to_owned() } else { count.to_string() };
        Cell::number(text).styled(if count == 0 { FAINT } else { style })
    };
    let verdict = case.verdict.as_ref();
    let broken = tally.broken + tally.broken_shoulds;
    let mut row = vec![
        Cell::text(shortened(&case.name, 60)),
        Cell::text(format!("{symbol} {}", case.status.word())).styled(style),
        number(tally.held, GOOD),
        number(broken, if tally.broken > 0 { BAD } else { OPEN }),
        number(tally.inconclusive, OPEN),
        number(tally.not_judged, FAINT),
        Cell::number(
            verdict.map_or_else(|| "-".to_owned(), |verdict| words::count(verdict.events)),
        ),
        Cell::number(verdict.map_or_else(|| "-".to_owned(), |verdict| words::time(verdict.took))),
    ];
    let ran_for = if case.took.is_zero() { "-".to_owned() } else { words::time(case.took) };
    row.extend(driven.then(|| Cell::number(ran_for)));
    row
}

/// Returns the appearance of a result: its style, and a symbol for readers who cannot see colours.
const fn style_of(status: &CaseStatus) -> (Style, &'static str) {
    match status {
        CaseStatus::Passed => (GOOD, "✓"),
        CaseStatus::Failed => (BAD, "✗"),
        CaseStatus::Inconclusive(_) => (OPEN, "?"),
        CaseStatus::Unsupported(_) => (FAINT, "–"),
        CaseStatus::Broken(_) => (BAD, "!"),
    }
}

/// Returns whether a case has more to report than its line in the summary.
fn has_details(case: &Case) -> bool {
    let tally = Tally::of(case);
    case.status != CaseStatus::Passed
        || tally.broken_shoulds + tally.inconclusive > 0
        || !case.notes.is_empty()
        || case.verdict.as_ref().is_some_and(|verdict| !verdict.unknown.is_empty())
}

/// Writes what a case has to report in addition to its line in the summary.
fn details<'r>(case: &'r Case, shown: &mut Shown<'r>, out: &mut impl Write) -> io::Result<()> {
    let (style, symbol) = style_of(&case.status);
    write!(out, "{style}{symbol} {}{style:#}: ", printable(&case.name, TEXT_CHARACTERS_MAX))?;
    match case.status.reason() {
        Some(why) => {
            writeln!(out, "{}, {}", case.status.word(), printable(why, TEXT_CHARACTERS_MAX))?
        }
        None => {
            let shoulds = match Tally::of(case).broken_shoulds {
                0 => "",
                _ => ", but a recommended promise is broken",
            };
            writeln!(out, "{}{shoulds}", case.status.word())?;
        }
    }
    repeat(case, out)?;
    for (what, _) in case.reached.iter().filter(|(_, reached)| !reached) {
        writeln!(out, "  not reached: {}", printable(what, TEXT_CHARACTERS_MAX))?;
    }
    for note in &case.notes {
        writeln!(out, "  note: {}", printable(note, TEXT_CHARACTERS_MAX))?;
    }
    if let Some(verdict) = &case.verdict {
        judged(case, verdict, shown, out)?;
    }
    writeln!(out)
}

/// Writes the command that repeats the case.
fn repeat(case: &Case, out: &mut impl Write) -> io::Result<()> {
    let Some(again) = &case.again else { return Ok(()) };
    let seed = case.seed.map(|seed| format!("seed {seed}"));
    let here = std::env::current_dir().unwrap_or_default();
    let history = case.history.as_deref().map(|path| {
        let path = path.strip_prefix(here).unwrap_or(path).to_string_lossy();
        format!("history {}", printable(&path, TEXT_CHARACTERS_MAX))
    });
    let facts: Vec<String> = seed.into_iter().chain(history).collect();
    writeln!(out, "  {}", facts.join(", "))?;
    writeln!(out, "  again: {}", printable(again, COMMAND_CHARACTERS_MAX))
}

fn judged<'r>(
    case: &'r Case,
    verdict: &Verdict,
    shown: &mut Shown<'r>,
    out: &mut impl Write,
) -> io::Result<()> {
    let quotes = Quotes::of(case);
    for own in &case.own_checks {
        own_check(own, &quotes, out)?;
    }
    for judgement in &verdict.judgements {
        let check = judgement.check.check();
        match &judgement.outcome {
            Outcome::Broken { times, finding } => {
                match shown.entry(Pattern::of(judgement.check, finding)) {
                    Entry::Occupied(first) => {
                        finding::write_again(check, *times, finding, first.get(), out)?;
                    }
                    Entry::Vacant(entry) => {
                        entry.insert(&case.name);
                        finding::write(check, *times, finding, &quotes, out)?;
                    }
                }
            }
            // If this is also the case's own reason, it has already been written.
            Outcome::Inconclusive(why)
                if case.status.reason() != Some(&*format!("{}: {why}", check.name)) =>
            {
                let why = printable(why, TEXT_CHARACTERS_MAX);
                writeln!(out, "  {OPEN}? {}{OPEN:#} ({}): {why}", check.name, check.strength)?;
            }
            Outcome::Inconclusive(_) | Outcome::Held { .. } | Outcome::NotJudged(_) => {}
        }
    }
    not_judged(case, verdict, out)?;
    for (event, line, times) in &verdict.unknown {
        let event = printable(event, 60);
        let times = words::counted(*times, "record");
        writeln!(
            out,
            "  {OPEN}unknown{OPEN:#}: {times} \"{event}\" passed over, the first in line {line}"
        )?;
    }
    if let Some(cut) = &verdict.cut {
        writeln!(out, "  {OPEN}cut{OPEN:#}: {}", printable(&cut.to_string(), TEXT_CHARACTERS_MAX))?;
    }
    writeln!(out, "  {FAINT}{}{FAINT:#}", effort(verdict))
}

/// Writes the result of one of the user's own checks, if it has something to report.
fn own_check(own: &OwnCheck, quotes: &Quotes, out: &mut impl Write) -> io::Result<()> {
    let command = printable(&own.command, TEXT_CHARACTERS_MAX);
    match &own.outcome {
        OwnOutcome::Held => Ok(()),
        OwnOutcome::Failed(why) => {
            let why = printable(why, TEXT_CHARACTERS_MAX);
            writeln!(out, "  {OPEN}! {command}{OPEN:#}: {why}")
        }
        OwnOutcome::Broken { times, finding } => {
            let times = words::times(*times);
            writeln!(out, "  {BAD}✗ {command}{BAD:#} (user check) is broken {times}")?;
            finding::happened(finding, BAD, quotes, out)
        }
    }
}

/// Writes the checks that had nothing to judge, with the reasons if there is nothing else to
/// report.
fn not_judged(case: &Case, verdict: &Verdict, out: &mut impl Write) -> io::Result<()> {
    let reasons = reasons(verdict);
    if case.status == CaseStatus::Failed && !reasons.is_empty() {
        let checks: Vec<&str> = reasons.into_iter().flat_map(|(_, checks)| checks).collect();
        return writeln!(out, "  {FAINT}not judged: {}{FAINT:#}", checks.join(", "));
    }
    for (why, checks) in reasons {
        let why = printable(&why, TEXT_CHARACTERS_MAX);
        writeln!(out, "  {FAINT}not judged: {} ({why}){FAINT:#}", checks.join(", "))?;
    }
    Ok(())
}

/// Returns the reasons why checks had nothing to judge, each with its checks.
fn reasons(verdict: &Verdict) -> Vec<(String, Vec<&'static str>)> {
    let mut reasons: Vec<(String, Vec<&'static str>)> = Vec::new();
    for judgement in &verdict.judgements {
        let Outcome::NotJudged(why) = &judgement.outcome else {
            continue;
        };
        let name = judgement.check.check().name;
        match reasons.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, checks)) => checks.push(name),
            None => reasons.push((why.clone(), vec![name])),
        }
    }
    reasons
}

/// Returns the time and memory that judging took.
pub(super) fn effort(verdict: &Verdict) -> String {
    let memory =
        verdict.memory_bytes_max.map(|bytes| format!(", with {} of memory", words::bytes(bytes)));
    let (events, took) = (words::counted(verdict.events, "event"), words::time(verdict.took));
    format!("judged {events} in {took}{}", memory.unwrap_or_default())
}

/// Writes the last line: the overall result.
fn conclusion(run: &Run, out: &mut impl Write) -> io::Result<()> {
    let status = run.status();
    let style = match status {
        RunStatus::Passed => GOOD,
        RunStatus::Inconclusive => OPEN,
        RunStatus::Failed | RunStatus::Broken => BAD,
    };
    writeln!(
        out,
        "{style}{}{style:#}: {}",
        status.word().to_uppercase(),
        super::conclude::conclude(run)
    )
}

#[cfg(test)]
mod tests {
    use super::super::samples::{HOSTILE, case, everything, finding, run, verdict};
    use super::*;
    use crate::check::CheckId;

    fn plain(run: &Run) -> String {
        let mut out = Vec::new();
        write(run, &mut out).expect("memory takes it");
        let text = String::from_utf8(out).expect("it is UTF-8");
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn finding_shows_promise_event_and_witnesses() {
        let text = plain(&everything());
        for part in [
            "total-order (must) is broken 3 times",
            "promised: Two members of a group",
            "  seed 7, history ",
            "  again: tramontane-conformance run --adapter /home/me/adapter\n",
            "▶ line 9: what this line shows (culprit)",
            r#"{"ev":"deliver","t_ns":80"#,
            "not judged: durable-kept",
            "3 records",
            "judged 2 014 events in 6.04 ms, with 13.0 MiB of memory",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let last = text.lines().last().unwrap_or_default();
        assert!(
            last.starts_with(
                "FAILED: 2 required promises are broken, in 1 of 5 cases, 1 broken, 1 inconclusive"
            ),
            "{last}"
        );
    }

    #[test]
    fn untrusted_text_is_escaped_on_the_terminal() {
        let text = plain(&everything());
        assert!(text.contains("\\u{1b}[2J"), "{text}");
        assert!(
            !text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{HOSTILE:?}"
        );
    }

    #[test]
    fn violated_recommended_promise_passes_with_notice() {
        let only = verdict(&[(CheckId::Quiescence, finding("n0 posted", &[1]))]);
        let text = plain(&run(vec![case("quiet", None, verdict(&[])), case("chatty", None, only)]));
        assert!(text.contains("chatty: passed, but a recommended promise is broken"), "{text}");
        assert!(text.contains("quiescence (should) is broken"), "{text}");
        let last = text.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("PASSED") && last.contains("one recommended promise is broken"),
            "{last}"
        );
    }

    #[test]
    fn passed_cases_take_one_line_each() {
        let cases =
            (0..12).map(|index| case(&format!("case-{index}"), None, verdict(&[]))).collect();
        let text = plain(&run(cases));
        assert!(text.lines().count() < 20, "{text}");
        assert!((0..12).all(|index| text.contains(&format!("case-{index} "))), "{text}");
    }
}
