//! The commands of the benches: each runs its experiment and prints the report.

use std::io::Write;

use crate::command::{Experiment, Multicast, Views};
use crate::durable::report::DurableReport;
use crate::error::BenchError;
use crate::large::LargeReport;
use crate::load::LoadReport;
use crate::low_rate::{IdleReport, LatencyReport};
use crate::machine::machine;
use crate::progress::StepsBar;
use crate::report::BenchReport;
use crate::views::report::ViewsReport;
use crate::{blocks, durable, large, load, low_rate, real, record, shards, views, worker};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::print::print;

/// Runs an experiment and prints its results to `out`.
///
/// # Errors
/// [`BenchError`].
pub fn run(command: &Experiment, out: &mut impl Write) -> Result<(), BenchError> {
    match command {
        Experiment::Multicast(arguments) => multicast(arguments, out),
        Experiment::Blocks(arguments) => blocks::run::run(arguments, out),
        Experiment::Latency(arguments) => {
            let report = low_rate::latency(arguments, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, LatencyReport::text)?)
        }
        Experiment::Load(arguments) => {
            let report = load::run(arguments, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, LoadReport::text)?)
        }
        Experiment::Idle(arguments) => {
            let report = low_rate::idle(arguments, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, IdleReport::text)?)
        }
        Experiment::Views(arguments @ Views { large: Some(bytes), .. }) => {
            let report = large::run(arguments, *bytes, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, LargeReport::text)?)
        }
        Experiment::Views(arguments) => {
            let report = views::run::run(arguments, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, ViewsReport::text)?)
        }
        Experiment::Record(arguments) => record::run::run(arguments, out),
        Experiment::Shards(arguments) => shards::run::run(arguments, out),
        Experiment::Durable(arguments) => {
            let report = durable::run::run(arguments, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, DurableReport::text)?)
        }
        Experiment::Worker(arguments) => worker::run(arguments),
    }
}

fn multicast(arguments: &Multicast, out: &mut impl Write) -> Result<(), BenchError> {
    if arguments.nodes.contains(&0) {
        return Err(BenchError::Arguments("--nodes is 0; give at least 1".into()));
    }
    let sizes = arguments.bytes.iter();
    let runs = sizes.flat_map(|bytes| arguments.nodes.iter().map(|nodes| (*bytes, *nodes)));
    let interrupts = Interrupts::watch()?;
    let progress = StepsBar::new((arguments.bytes.len() * arguments.nodes.len()) as u64);
    let mut rows = Vec::new();
    for (bytes, nodes) in runs {
        progress.set_message(format!("{nodes} members, {bytes} bytes"));
        rows.push(real::run(arguments, nodes, bytes, &interrupts)?);
        progress.inc(1);
    }
    drop(progress);
    let report = BenchReport { machine: machine(), rows };
    Ok(print(out, arguments.json, &report, BenchReport::text)?)
}
