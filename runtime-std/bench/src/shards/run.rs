//! Runs the experiments that are asked for, and prints what came of them.

use std::io::Write;

use tramontane_fixtures::profile::Profile;
use tramontane_local::print::print;

use super::case::{Case, Demand, Figures};
use super::command::{Arguments, MACHINE, MESSAGES_MACHINE};
use super::experiment::{Experiment, Point};
use super::leader_change::LeaderChange;
use super::report::{Report, Row, Rows};
use super::runs::{run as run_all, spread};
use super::writes::{Posting, write_us};
use super::{claims, drawings, goals, leader_change, real};
use crate::error::BenchError;
use crate::profiles::Machine;
use crate::progress::Progress;
use crate::record::run::write_text;
use crate::report::Simulated;

/// Targets of the writes experiment.
const TARGETS: std::ops::RangeInclusive<u32> = 1..=24;

/// Leader changes, at least (8.7).
const CHANGES_MIN: u64 = 3;

/// The machines of a run: that of the paper, and the same with the kernel's TCP.
struct Machines {
    memory: Machine,
    messages: Machine,
}

impl Machines {
    fn load(arguments: &Arguments) -> Result<Self, BenchError> {
        let memory = arguments.machine.machine_or(MACHINE)?;
        let messages = arguments.machine.machine_or(MESSAGES_MACHINE)?;
        Ok(Self { memory, messages })
    }

    fn profile(&self, case: &Case) -> Profile {
        let machine = if case.system.is_message_passing() { &self.messages } else { &self.memory };
        machine.profile.clone()
    }
}

/// Runs the experiments, and prints what came of them.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), BenchError> {
    if arguments.real.real {
        return real::run::run(&arguments.real, arguments.json, out);
    }
    let machines = Machines::load(arguments)?;
    let seeds = arguments.seeds();
    let chosen = arguments.chosen();
    let mut rows = Vec::new();
    if chosen.contains(&Experiment::Writes) {
        rows.extend(writes(&machines.memory.profile, &seeds)?);
    }
    let points: Vec<Point> =
        chosen.iter().flat_map(|experiment| experiment.points(arguments.quick)).collect();
    rows.extend(messages(&points, &machines, &seeds)?);
    let leader_changes = match chosen.contains(&Experiment::LeaderChange) {
        true => changes(&machines.memory.profile, &seeds, arguments.quick)?,
        false => Vec::new(),
    };
    let report = Report {
        seeds: arguments.seeds,
        quick: arguments.quick,
        simulated: Simulated::of(&machines.memory),
        claims: claims::claims(Rows(&rows), &leader_changes),
        goals: goals::goals(Rows(&rows), &leader_changes),
        rows,
        leader_changes,
    };
    if let Some(folder) = &arguments.plots {
        drawings::write(&report.rows, folder)?;
    }
    if let Some(path) = &arguments.output {
        let command: Vec<String> = std::env::args().skip(1).collect();
        write_text(path, &report.markdown(&format!("tramontane {}", command.join(" "))))?;
    }
    Ok(print(out, arguments.json, &report, Report::text)?)
}

/// Runs the cases of all points, each once.
fn messages(points: &[Point], machines: &Machines, seeds: &[u64]) -> Result<Vec<Row>, BenchError> {
    let mut cases: Vec<Case> = points.iter().map(|point| point.case).collect();
    cases.sort_unstable();
    cases.dedup();
    let progress = Progress::cleared_by_signals((cases.len() * seeds.len()) as u64);
    progress.set_message("runs");
    let one = |case: &Case, seed| case.run(machines.profile(case), seed);
    let found = run_all(&cases, seeds, one, &|| progress.inc(1))?;
    let row = |point: &Point| found.get(&point.case).map(|runs| row(point, runs));
    Ok(points.iter().filter_map(row).collect())
}

fn row(point: &Point, runs: &[Figures]) -> Row {
    let case = point.case;
    Row {
        experiment: point.experiment,
        system: case.system.name(),
        over: point.over,
        destinations: case.destinations,
        replicas: case.replicas,
        payload_bytes: case.payload_bytes,
        clients: case.clients(),
        demand: case.demand,
        latency_us: spread(runs, |run| run.mean_us),
        p99_us: spread(runs, |run| run.p99_us),
        messages_per_s: spread(runs, |run| run.messages_per_s),
        case: Some(case),
    }
}

fn writes(profile: &Profile, seeds: &[u64]) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for posting in [Posting::Together, Posting::InTurn] {
        for targets in TARGETS {
            let one = |seed: &u64| write_us(posting, targets, profile.clone(), *seed);
            let times = seeds.iter().map(one).collect::<Result<Vec<f64>, _>>()?;
            rows.push(Row {
                experiment: Experiment::Writes,
                system: posting.name().into(),
                over: targets,
                destinations: targets,
                replicas: 1,
                payload_bytes: 64,
                clients: 1,
                demand: Demand::Low,
                latency_us: spread(&times, |us| *us),
                p99_us: spread(&times, |us| *us),
                messages_per_s: spread(&times, |us| 1e6 / us),
                case: None,
            });
        }
    }
    Ok(rows)
}

fn changes(
    profile: &Profile,
    seeds: &[u64],
    is_quick: bool,
) -> Result<Vec<LeaderChange>, BenchError> {
    let count = if is_quick { seeds.len() as u64 } else { CHANGES_MIN.max(seeds.len() as u64) };
    let progress = Progress::cleared_by_signals(count);
    progress.set_message("leader changes");
    let one = |_: &(), seed| leader_change::run(profile.clone(), seed, is_quick);
    let seeds: Vec<u64> = (1..=count).collect();
    let found = run_all(&[()], &seeds, one, &|| progress.inc(1))?;
    Ok(found.into_values().flatten().collect())
}
