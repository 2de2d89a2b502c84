//! Runs what the claims need, and prints the record.

use std::io::Write;
use std::path::Path;

use super::claim::{Claim, Kind, Look, Measure, Paper, Seen, Source, claims_of};
use super::command::Arguments;
use super::machines::Machines;
use super::own::Own;
use super::report::{Report, Row, Summary, stated};
use super::runs::{Cache, Missing, Runs, asked};
use super::senders::Papers;
use super::verdict::{Verdict, holds, leaves, ratio};
use crate::error::BenchError;
use crate::progress::Progress;
use crate::spread::Spread;
use tramontane_local::print::print;

/// Runs the record, and prints it.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), BenchError> {
    let machines = Machines::load(&arguments.machine)?;
    let claims = chosen(arguments)?;
    let seeds: Vec<u64> = (1..=arguments.seeds).collect();
    let (papers, own) = (Papers(&machines), Own(&machines));
    let (papers, own) = (Cache::new(&papers), Cache::new(&own));
    prepare(&claims, &papers, &seeds)?;
    let mut rows = Vec::new();
    for claim in &claims {
        let mut row = row(claim, &machines, &papers, &seeds)?;
        if arguments.own {
            row.own = of_own(claim, &own)?;
        }
        rows.push(row);
    }
    let mut summaries = Vec::new();
    for paper in [Paper::Spindle, Paper::Rdmc] {
        if rows.iter().any(|row| row.paper == paper) {
            summaries.push((paper, Summary::of(&rows, paper)));
        }
    }
    let report = Report { seeds: arguments.seeds, runs: papers.runs(), summaries, rows };
    if let Some(path) = &arguments.output {
        let command: Vec<String> = std::env::args().skip(1).collect();
        let text = report.markdown(&format!("tramontane {}", command.join(" ")));
        write_text(path, &text)?;
    }
    Ok(print(out, arguments.json, &report, Report::text)?)
}

/// Writes a page of the documentation.
///
/// # Errors
/// [`BenchError::Setup`] if the file cannot be written.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), BenchError> {
    std::fs::write(path, text)
        .map_err(|error| BenchError::Setup(format!("cannot write {}: {error}", path.display())))
}

/// The claims that are asked for.
fn chosen(arguments: &Arguments) -> Result<Vec<Claim>, BenchError> {
    let papers = arguments.paper.map_or(vec![Paper::Spindle, Paper::Rdmc], |paper| vec![paper]);
    let all: Vec<Claim> = papers.into_iter().flat_map(claims_of).collect();
    if let Some(id) = arguments.only.iter().find(|id| all.iter().all(|claim| claim.id != **id)) {
        return Err(BenchError::Arguments(format!(
            "there is no claim '{id}': 'bench record --seeds 1' lists all"
        )));
    }
    let is_meant =
        |claim: &Claim| arguments.only.is_empty() || arguments.only.iter().any(|id| id == claim.id);
    Ok(all.into_iter().filter(is_meant).collect())
}

/// Does the runs that the claims ask for.
fn prepare(claims: &[Claim], cache: &Cache<'_>, seeds: &[u64]) -> Result<(), BenchError> {
    let cases = asked(|runs| {
        for claim in claims {
            // What a figure of one leads to does not matter here.
            let _ = match claim.kind {
                Kind::Predicted(measure) | Kind::Fitted(measure) => measure(runs).map(drop),
                Kind::Direction(look) => look(runs).map(drop),
                Kind::Input(_) | Kind::NotModelled(_) => Ok(()),
            };
        }
    });
    let progress = Progress::cleared_by_signals((cases.len() * seeds.len()) as u64);
    progress.set_message("runs");
    cache.prepare(&cases, seeds, &|| progress.inc(1))
}

fn row(
    claim: &Claim,
    machines: &Machines,
    cache: &Cache<'_>,
    seeds: &[u64],
) -> Result<Row, BenchError> {
    let mut row = Row {
        paper: claim.paper(),
        id: claim.id,
        section: claim.section,
        words: claim.words,
        stated: stated(claim.stated, claim.unit),
        is_direction: matches!(claim.kind, Kind::Direction(_)),
        simulated: None,
        seen: String::new(),
        ratio: None,
        verdict: Verdict::NotModelled,
        is_in_view: super::spindle::IN_VIEW.contains(&claim.id),
        own: None,
        note: claim.note.to_owned(),
    };
    let judged = match claim.kind {
        Kind::NotModelled(reason) => {
            row.note = reason.to_owned();
            Ok(())
        }
        Kind::Input(source) => {
            row.verdict = Verdict::Input;
            if let Source::Parameter(machine, read) = source {
                let value = read(machines.of(machine));
                row.simulated = Some(Spread::of(&[value]));
                row.ratio = ratio(claim.stated, value);
            }
            Ok(())
        }
        Kind::Fitted(measure) | Kind::Predicted(measure) => {
            measured(claim, measure, cache, seeds, &mut row)
        }
        Kind::Direction(look) => looked(look, cache, seeds, &mut row),
    };
    match judged {
        Ok(()) => Ok(row),
        Err(Missing::Failed(error)) => Err(error),
        Err(Missing::NotThere(reason)) => {
            row.note = reason;
            Ok(row)
        }
    }
}

/// Looks at the medians, and counts the seeds in which a direction holds.
fn looked(look: Look, cache: &Cache<'_>, seeds: &[u64], row: &mut Row) -> Result<(), Missing> {
    let Seen { holds, words } = look(&Runs::new(cache, seeds))?;
    row.verdict = if holds { Verdict::Held } else { Verdict::Failed };
    let mut times = 0;
    for seed in seeds {
        times += usize::from(look(&Runs::new(cache, &[*seed]))?.holds);
    }
    row.seen = format!("{words} (in {times} of {})", seeds.len());
    Ok(())
}

/// Measures a number with each seed.
fn measured(
    claim: &Claim,
    measure: Measure,
    cache: &Cache<'_>,
    seeds: &[u64],
    row: &mut Row,
) -> Result<(), Missing> {
    let numbers: Result<Vec<f64>, Missing> =
        seeds.iter().map(|seed| measure(&Runs::new(cache, &[*seed]))).collect();
    let spread = Spread::of(&numbers?);
    row.ratio = ratio(claim.stated, spread.median);
    row.simulated = Some(spread);
    if let Some(words) = leaves(claim.stated, spread.median, claim.unit) {
        let end = if row.note.is_empty() { "" } else { "; " };
        row.note = format!("{}{end}{words}", row.note);
    }
    row.verdict = match claim.kind {
        Kind::Fitted(_) => Verdict::Fitted,
        _ if holds(claim.stated, spread.median) => Verdict::Held,
        _ => Verdict::Failed,
    };
    Ok(())
}

/// Our own core's number, with one seed.
fn of_own(claim: &Claim, own: &Cache<'_>) -> Result<Option<f64>, BenchError> {
    let (Kind::Predicted(measure) | Kind::Fitted(measure)) = claim.kind else { return Ok(None) };
    if claim.paper() == Paper::Rdmc {
        return Ok(None);
    }
    match measure(&Runs::new(own, &[1])) {
        Ok(number) => Ok(Some(number)),
        Err(Missing::NotThere(_)) => Ok(None),
        Err(Missing::Failed(error)) => Err(error),
    }
}
