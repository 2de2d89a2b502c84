//! Runs the cases that the rows need, judges the rows, and prints the record.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use super::command::RecordArguments;
use super::machines::Machines;
use super::number::short;
use super::page;
use super::query::{QueryContext, Series, answer};
use super::report::{ClaimRow, LineSource, PaperPart, Record, Summary, TableLine, stated};
use super::rows::{Claim, Figure, Paper, RowFile};
use super::runs::{Cache, Runs};
use super::verdict::{ClaimVerdict, holds, leaves, ratio};
use crate::error::BenchError;
use crate::progress::StepsBar;
use crate::spread::Spread;
use tramontane_local::print::print;

/// Runs the record, and prints it.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn run(arguments: &RecordArguments, out: &mut impl Write) -> Result<(), BenchError> {
    let machines = Machines::load(&arguments.machine)?;
    let mut chosen = rows(arguments)?;
    choose(&mut chosen, &arguments.only)?;
    let seeds: Vec<u64> = (1..=arguments.seeds).collect();
    let cache = Cache::new(&machines);
    prepare(&chosen, &machines, &cache, &seeds)?;
    let mut parts = Vec::new();
    for (name, rows) in &chosen {
        let judge = Judge { rows, machines: &machines, cache: &cache, seeds: &seeds };
        parts.push(judge.part(name)?);
    }
    let record = Record { seeds: arguments.seeds, runs: cache.runs(), parts };
    if let Some(folder) = &arguments.plots {
        page::draw(&record, folder)?;
    }
    if let Some(path) = &arguments.output {
        let command: Vec<String> = std::env::args().skip(1).collect();
        let text = page::markdown(&record, &format!("tramontane-lab {}", command.join(" ")));
        std::fs::write(path, text).map_err(|error| {
            BenchError::Setup(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    Ok(print(out, arguments.json, &record, Record::text)?)
}

/// Returns the rows of the papers, or of a file, each with its name.
fn rows(arguments: &RecordArguments) -> Result<Vec<(String, RowFile)>, BenchError> {
    if let Some(path) = &arguments.rows {
        let name = path.display().to_string();
        let wrong = |what: String| BenchError::Arguments(format!("cannot read {name}: {what}"));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let rows = RowFile::of(&text).map_err(wrong)?;
        return Ok(vec![(name, rows)]);
    }
    let papers = if arguments.paper.is_empty() { &Paper::ALL[..] } else { &arguments.paper };
    papers.iter().map(|paper| Ok((format!("{paper:?}"), paper.rows()?))).collect()
}

/// Keeps only the requested rows.
fn choose(chosen: &mut Vec<(String, RowFile)>, only: &[String]) -> Result<(), BenchError> {
    if only.is_empty() {
        return Ok(());
    }
    let has = |id: &String| {
        let all = chosen.iter().flat_map(|(_, rows)| rows.claims.iter().chain(&rows.goals));
        all.into_iter().any(|claim| claim.id == *id)
    };
    if let Some(id) = only.iter().find(|id| !has(id)) {
        return Err(BenchError::Arguments(format!(
            "there is no claim '{id}'; runtime-std/bench/claims lists all claims"
        )));
    }
    for (_, rows) in &mut *chosen {
        rows.claims.retain(|claim| only.contains(&claim.id));
        rows.goals.retain(|goal| only.contains(&goal.id));
        rows.tables.clear();
    }
    chosen.retain(|(_, rows)| !(rows.claims.is_empty() && rows.goals.is_empty()));
    Ok(())
}

/// Carries out the runs that the rows need.
fn prepare(
    chosen: &[(String, RowFile)],
    machines: &Machines,
    cache: &Cache<'_>,
    seeds: &[u64],
) -> Result<(), BenchError> {
    let (cases, core_cases) = (Mutex::default(), Mutex::default());
    for (_, rows) in chosen {
        let judge = Judge { rows, machines, cache, seeds };
        let (runs, core_runs) = (Runs::Asked(&cases), Runs::Asked(&core_cases));
        for claim in rows.claims.iter().chain(&rows.goals) {
            judge.answers(claim, &runs)?;
            judge.core(claim, &core_runs)?;
        }
        for (_, query) in rows.tables.iter().flat_map(|one| one.lines.iter().chain(&one.model)) {
            judge.answer(query, &runs, &[], false)?;
        }
    }
    let [cases, core_cases]: [BTreeSet<_>; 2] =
        [cases, core_cases].map(|of| of.into_inner().unwrap_or_else(PoisonError::into_inner));
    let runs = cases.len() * seeds.len() + core_cases.len();
    let progress = StepsBar::cleared_by_signals(runs as u64);
    progress.set_message("runs");
    cache.prepare(&cases, seeds, &|| progress.inc(1))?;
    cache.prepare(&core_cases, first(seeds), &|| progress.inc(1))
}

/// Returns the seed of the runs that show how our core compares with another system's model.
fn first(seeds: &[u64]) -> &[u64] {
    seeds.get(..1).unwrap_or_default()
}

/// Judges the rows of one paper.
struct Judge<'r> {
    rows: &'r RowFile,
    machines: &'r Machines,
    cache: &'r Cache<'r>,
    seeds: &'r [u64],
}

impl Judge<'_> {
    fn part(&self, name: &str) -> Result<PaperPart, BenchError> {
        let rows = |claims: &[Claim]| -> Result<Vec<ClaimRow>, BenchError> {
            claims.iter().map(|claim| self.row(claim)).collect()
        };
        let (goals, claims) = (rows(&self.rows.goals)?, rows(&self.rows.claims)?);
        let mut tables = Vec::new();
        for figure in &self.rows.tables {
            tables.push((figure.clone(), self.lines(figure)?));
        }
        let (title, about) = (self.rows.title.clone(), self.rows.about.clone());
        let summary = Summary::of(&claims);
        Ok(PaperPart { paper: name.to_owned(), title, about, summary, goals, claims, tables })
    }

    fn answer(
        &self,
        query: &str,
        runs: &Runs<'_>,
        values: &[Series],
        is_core: bool,
    ) -> Result<Series, BenchError> {
        let (RowFile { cases, lists, .. }, machines) = (self.rows, self.machines);
        answer(query, &QueryContext { runs, machines, cases, lists, is_core }, values)
    }

    /// Returns the row's values, and the answer to its query, if it has one.
    fn answers(
        &self,
        claim: &Claim,
        runs: &Runs<'_>,
    ) -> Result<(Vec<Series>, Option<f64>), BenchError> {
        self.answers_of(claim, runs, false)
    }

    /// Returns our core's result of a claim, and whether the core shows the claim's direction, if
    /// the claim is to be evaluated for the core.
    fn core(&self, claim: &Claim, runs: &Runs<'_>) -> Result<Option<(String, bool)>, BenchError> {
        let has_direction = claim.holds.is_some() || claim.direction.is_some();
        if !self.rows.with_core || claim.not_core.is_some() || !has_direction {
            return Ok(None);
        }
        let (values, Some(number)) = self.answers_of(claim, runs, true)? else { return Ok(None) };
        let Some(direction) = &claim.direction else {
            return Ok(Some((shown(claim, &values), number == 1.0)));
        };
        let query = format!("$1 {direction}");
        let value = Series { numbers: vec![number], places: Vec::new() };
        let is_same = self.answer(&query, runs, &[value], false)?.numbers == [1.0];
        Ok(Some((short(number), is_same)))
    }

    fn answers_of(
        &self,
        claim: &Claim,
        runs: &Runs<'_>,
        is_core: bool,
    ) -> Result<(Vec<Series>, Option<f64>), BenchError> {
        let told = |error| match error {
            BenchError::Arguments(what) => BenchError::Arguments(format!("{}: {what}", claim.id)),
            error => BenchError::Setup(format!("{}: {error}", claim.id)),
        };
        let mut values = Vec::new();
        for query in &claim.values {
            values.push(self.answer(query, runs, &[], is_core).map_err(told)?);
        }
        let queries = [&claim.measure, &claim.holds, &claim.input];
        let query = queries.into_iter().flatten().find(|query| !query.is_empty());
        let Some(query) = query else { return Ok((values, None)) };
        let number = self.answer(query, runs, &values, is_core).map_err(told)?.number();
        Ok((values, Some(number.map_err(|what| told(BenchError::Arguments(what)))?)))
    }

    fn row(&self, claim: &Claim) -> Result<ClaimRow, BenchError> {
        let reason = claim.not_modelled.as_ref();
        let mut row = ClaimRow {
            id: claim.id.clone(),
            section: claim.section.clone(),
            words: claim.words.clone(),
            stated: stated(claim.stated, &claim.unit),
            is_direction: claim.holds.is_some(),
            simulated: None,
            seen: String::new(),
            ratio: None,
            verdict: if reason.is_some() { ClaimVerdict::NotModelled } else { ClaimVerdict::Input },
            is_in_view: claim.in_view,
            note: reason.unwrap_or(&claim.note).clone(),
            core: claim.not_core.clone().unwrap_or_default(),
            is_core_same: None,
        };
        if let Some((core, is_same)) =
            self.core(claim, &Runs::Done(self.cache, first(self.seeds)))?
        {
            row.core = format!("{core}: {}", if is_same { "same" } else { "DIFFERS" });
            row.is_core_same = Some(is_same);
        }
        if claim.holds.is_some() {
            let (values, is_held) = self.answers(claim, &Runs::Done(self.cache, self.seeds))?;
            row.verdict = verdict(is_held == Some(1.0));
            row.seen = format!("{} ({})", shown(claim, &values), self.times(claim)?);
        } else if reason.is_none() {
            let mut numbers = Vec::new();
            for seed in self.seeds {
                numbers.extend(self.answers(claim, &Runs::Done(self.cache, &[*seed]))?.1);
            }
            if !numbers.is_empty() {
                let spread = Spread::of(&numbers);
                row.ratio = claim.stated.and_then(|stated| ratio(stated, spread.median));
                row.simulated = Some(spread);
                if claim.measure.is_some() {
                    Self::judge(claim, spread.median, &mut row);
                }
            }
        }
        Ok(row)
    }

    /// Compares a measured number with the stated one.
    fn judge(claim: &Claim, measured: f64, row: &mut ClaimRow) {
        let Some(stated) = claim.stated else {
            row.verdict = ClaimVerdict::Measured;
            return;
        };
        let note = [row.note.clone()].into_iter().filter(|note| !note.is_empty());
        let note = note.chain(leaves(stated, measured, &claim.unit));
        row.note = note.collect::<Vec<_>>().join("; ");
        let is_held = holds(stated, measured);
        row.verdict = if claim.fitted { ClaimVerdict::Fitted } else { verdict(is_held) };
    }

    /// Returns the number of seeds in which a direction holds.
    fn times(&self, claim: &Claim) -> Result<String, BenchError> {
        let mut times = 0;
        for seed in self.seeds {
            let (_, is_held) = self.answers(claim, &Runs::Done(self.cache, &[*seed]))?;
            times += usize::from(is_held == Some(1.0));
        }
        Ok(format!("in {times} of {}", self.seeds.len()))
    }

    fn lines(&self, figure: &Figure) -> Result<Vec<TableLine>, BenchError> {
        let mut lines = Vec::new();
        let own = if figure.model.is_empty() { LineSource::Runs } else { LineSource::Core };
        let own = figure.lines.iter().map(|line| (own, line));
        let model = figure.model.iter().map(|line| (LineSource::Model, line));
        for (source, (name, query)) in own.chain(model) {
            let mut of_seeds = Vec::new();
            for seed in self.seeds {
                let runs = Runs::Done(self.cache, &[*seed]);
                of_seeds.push(self.answer(query, &runs, &[], false)?);
            }
            let places = of_seeds.first().map_or_else(Vec::new, |series| series.places.clone());
            let cell = |at: usize| {
                Spread::of(&of_seeds.iter().map(|of| of.numbers[at]).collect::<Vec<_>>())
            };
            let cells = places.iter().cloned().zip((0..places.len()).map(cell)).collect();
            lines.push(TableLine { source, name: name.clone(), cells });
        }
        for (name, points) in &figure.stated {
            let cell = |(place, value): &(f64, f64)| (place.to_string(), Spread::of(&[*value]));
            let cells = points.iter().map(cell).collect();
            lines.push(TableLine { source: LineSource::Paper, name: name.clone(), cells });
        }
        Ok(lines)
    }
}

const fn verdict(is_held: bool) -> ClaimVerdict {
    if is_held { ClaimVerdict::Held } else { ClaimVerdict::Failed }
}

/// Formats a direction's values.
fn shown(claim: &Claim, values: &[Series]) -> String {
    let words: Vec<String> = values.iter().map(Series::words).collect();
    if claim.shows.is_empty() {
        return words.join("; ");
    }
    let mut shown = claim.shows.clone();
    for (number, words) in (1..).zip(&words) {
        shown = shown.replace(&format!("{{{number}}}"), words);
    }
    shown
}
