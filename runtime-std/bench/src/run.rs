//! Each command of the benches: runs its experiment, and prints the report.

use std::io::Write;

use crate::command::{Command, Multicast, Views};
use crate::error::BenchError;
use crate::large::LargeReport;
use crate::low_rate::{IdleReport, LatencyReport};
use crate::machine::machine;
use crate::options::FabricKind;
use crate::progress::Progress;
use crate::report::Report;
use crate::steady::SteadyReport;
use crate::views::report::ViewsReport;
use crate::{blocks, large, low_rate, real, report, simulated, steady, views, worker};
use tramontane_local::group::LocalError;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::print::print;

/// Runs an experiment and prints what came of it to `out`.
///
/// # Errors
/// [`BenchError`].
pub fn run(command: &Command, out: &mut impl Write) -> Result<(), BenchError> {
    match command {
        Command::Multicast(arguments) => multicast(arguments, out),
        Command::Blocks(arguments) => blocks::run::run(arguments, out),
        Command::Latency(arguments) => {
            let report = low_rate::latency(arguments, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, LatencyReport::text)?)
        }
        Command::Idle(arguments) => {
            let report = low_rate::idle(arguments, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, IdleReport::text)?)
        }
        Command::Views(arguments @ Views { large: Some(bytes), .. }) => {
            let report = large::run(arguments, *bytes, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, LargeReport::text)?)
        }
        Command::Views(arguments) if arguments.steady => {
            let report = steady::run(arguments, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, SteadyReport::text)?)
        }
        Command::Views(arguments) => {
            let report = views::run::run(arguments, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, ViewsReport::text)?)
        }
        Command::Worker(arguments) => worker::run(arguments),
    }
}

fn multicast(arguments: &Multicast, out: &mut impl Write) -> Result<(), BenchError> {
    if arguments.nodes.contains(&0) {
        return Err(BenchError::Arguments("--nodes is 0: a group has at least one member".into()));
    }
    if let (FabricKind::Sim, Some(option)) = (arguments.fabric, arguments.device.given()) {
        return Err(LocalError::NoDevice(option).into());
    }
    let sizes = match (arguments.bytes.is_empty(), arguments.fabric) {
        (false, _) => arguments.bytes.clone(),
        (true, FabricKind::Sim) => vec![10_240],
        (true, _) => vec![1, 1_024, 10_240],
    };
    let runs: Vec<(u32, u16)> = sizes
        .iter()
        .flat_map(|bytes| arguments.nodes.iter().map(|nodes| (*bytes, *nodes)))
        .collect();
    let steps = runs.len() as u64;
    let real = match arguments.fabric.carrier() {
        Some(carrier) => Some((carrier, Interrupts::watch()?)),
        None => None,
    };
    let progress =
        if real.is_some() { Progress::new(steps) } else { Progress::cleared_by_signals(steps) };
    let mut rows = Vec::new();
    for (bytes, nodes) in runs {
        progress.set_message(format!("{nodes} members, {bytes} bytes"));
        rows.push(match &real {
            Some((carrier, interrupts)) => {
                real::run(arguments, *carrier, nodes, bytes, interrupts)?
            }
            None => simulated::run(arguments, nodes, bytes)?,
        });
        progress.inc(1);
    }
    drop(progress);
    if let Some(path) = &arguments.plot {
        report::drawing(&rows).write(path)?;
    }
    let report = Report { machine: machine(), rows: &rows };
    Ok(print(out, arguments.json, &report, Report::text)?)
}
