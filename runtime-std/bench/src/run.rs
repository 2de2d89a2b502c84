//! Each command of the benches: runs its experiment, and prints the report.

use std::io::Write;

use crate::command::{Command, Multicast, Views};
use crate::durable::report::DurableReport;
use crate::error::BenchError;
use crate::large::LargeReport;
use crate::low_rate::{IdleReport, LatencyReport};
use crate::machine::machine;
use crate::options::FabricKind;
use crate::profiles::ParametersReport;
use crate::progress::Progress;
use crate::report::{Report, Row, Simulated};
use crate::steady::SteadyReport;
use crate::views::report::ViewsReport;
use crate::{
    blocks, dds, durable, large, low_rate, real, record, report, shards, simulated, steady, views,
    worker,
};
use tramontane_local::group::LocalError;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::print::print;
use tramontane_runtime::carrier::Carrier;

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
        Command::Parameters(arguments) => {
            let report = ParametersReport::of(arguments.machine.machine()?);
            Ok(print(out, arguments.json, &report, ParametersReport::text)?)
        }
        Command::Record(arguments) => record::run::run(arguments, out),
        Command::Shards(arguments) => shards::run::run(arguments, out),
        Command::Dds(arguments) => dds::run::run(arguments, out),
        Command::Durable(arguments) => {
            let report = durable::run::run(arguments, &Interrupts::watch()?)?;
            Ok(print(out, arguments.json, &report, DurableReport::text)?)
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
    match arguments.fabric.carrier() {
        Some(carrier) => measured(arguments, carrier, &runs, out),
        None => simulated(arguments, &runs, out),
    }
}

/// Runs real processes, one configuration after the other.
fn measured(
    arguments: &Multicast,
    carrier: Carrier,
    runs: &[(u32, u16)],
    out: &mut impl Write,
) -> Result<(), BenchError> {
    arguments.machine.refuse()?;
    for (option, is_given) in
        [("--seeds", arguments.seeds.is_some()), ("--variant", !arguments.variant.is_empty())]
    {
        if is_given {
            return Err(BenchError::Arguments(format!(
                "{option} is of the simulator: leave it out, or give --fabric sim"
            )));
        }
    }
    let interrupts = Interrupts::watch()?;
    let progress = Progress::new(runs.len() as u64);
    let mut rows = Vec::new();
    for (bytes, nodes) in runs {
        progress.set_message(format!("{nodes} members, {bytes} bytes"));
        rows.push(real::run(arguments, carrier, *nodes, *bytes, &interrupts)?);
        progress.inc(1);
    }
    drop(progress);
    conclude(arguments, None, &rows, out)
}

/// Simulates, one configuration after the other.
fn simulated(
    arguments: &Multicast,
    runs: &[(u32, u16)],
    out: &mut impl Write,
) -> Result<(), BenchError> {
    if arguments.window == 0 {
        return Err(BenchError::Arguments("--window is 0: a sender has at least one slot".into()));
    }
    let machine = arguments.machine.machine()?;
    let variants = simulated::variants(arguments)?;
    let seeds = simulated::seeds(arguments).len();
    let progress = Progress::cleared_by_signals((runs.len() * variants.len() * seeds) as u64);
    let mut rows = Vec::new();
    let configurations = variants
        .iter()
        .flat_map(|variant| runs.iter().map(move |(bytes, nodes)| (*variant, *nodes, *bytes)));
    for configuration @ (variant, nodes, bytes) in configurations {
        progress.set_message(format!("{}, {nodes} members, {bytes} bytes", variant.name()));
        rows.push(simulated::run(arguments, &machine, configuration, &progress)?);
    }
    drop(progress);
    conclude(arguments, Some(Simulated::of(&machine)), &rows, out)
}

/// Draws and prints what came of the runs.
fn conclude(
    arguments: &Multicast,
    simulated: Option<Simulated>,
    rows: &[Row],
    out: &mut impl Write,
) -> Result<(), BenchError> {
    if let Some(path) = &arguments.plot {
        report::drawing(rows).write(path)?;
    }
    let report = Report { machine: machine(), simulated, rows };
    Ok(print(out, arguments.json, &report, Report::text)?)
}
