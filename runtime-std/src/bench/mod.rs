//! Experiments: Spindle's continuous sending, over shared memory, TCP, RDMA or in the simulator, and probes of the
//! machine's limit to compare with; and RDMC's block multicasts, in the simulator, over shared memory or TCP.

pub mod blocks;
pub mod command;
mod in_views;
pub mod iperf;
mod large;
pub mod low_rate;
pub mod mesh;
pub mod paper;
pub mod plot;
pub mod probe;
pub mod processes;
mod progress;
mod real;
pub mod report;
mod simulated;
pub mod touch;
pub mod views;
pub mod worker;

use std::io::Write;

use serde::Serialize;
use tramontane_core::layout::LayoutError;
use tramontane_core::memory::OutOfRow;

use crate::join::JoinError;
use crate::local::LocalError;
use crate::member::{SendError, Stopped};
use crate::process::Leash;
use crate::shared_memory;
use crate::table::wrapped;
use progress::Progress;

/// Why an experiment could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// Arguments that make no experiment; the text says what to change.
    #[error("{0}")]
    Arguments(String),
    /// The machine, or another process of the experiment.
    #[error("{0}")]
    Setup(String),
    /// The group is wrong.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The members did not come together.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The probe's processes did not come together.
    #[error(transparent)]
    Rendezvous(#[from] shared_memory::Error),
    /// The members have nowhere to meet.
    #[error(transparent)]
    Place(#[from] LocalError),
    /// A member stopped in mid-run.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A promise of the group was broken.
    #[error("{0}")]
    Broken(String),
    /// A send failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The report cannot be written.
    #[error("cannot write the report: {0}")]
    Output(std::io::Error),
    /// A probe's peer did not answer, or its memory is too small.
    #[error("the probe's peer did not answer within a minute")]
    Probe,
}

impl From<OutOfRow> for BenchError {
    fn from(_: OutOfRow) -> Self {
        Self::Probe
    }
}

/// Runs an experiment and prints what came of it to `out`.
///
/// # Errors
/// [`BenchError`].
pub fn run(command: &command::Command, out: &mut impl Write) -> Result<(), BenchError> {
    match command {
        command::Command::Multicast(arguments) => multicast(arguments, out),
        command::Command::Blocks(arguments) => blocks::run(arguments, out),
        command::Command::Latency(arguments) => {
            let report = low_rate::latency(arguments)?;
            print(out, arguments.json, &report, || report.text())
        }
        command::Command::Idle(arguments) => {
            let report = low_rate::idle(arguments)?;
            print(out, arguments.json, &report, || report.text())
        }
        command::Command::Views(arguments @ command::Views { large: Some(bytes), .. }) => {
            let report = large::run(arguments, *bytes)?;
            print(out, arguments.json, &report, || report.text())
        }
        command::Command::Views(arguments) if arguments.steady => {
            let report = in_views::steady(arguments)?;
            print(out, arguments.json, &report, || report.text())
        }
        command::Command::Views(arguments) => {
            let report = views::run(arguments)?;
            print(out, arguments.json, &report, || report.text())
        }
        command::Command::ViewMember(arguments) => {
            let part = serde_json::from_str(&arguments.task)
                .map_err(|error| BenchError::Arguments(format!("not a member: {error}")))?;
            let leash = Leash::attach().map_err(|error| BenchError::Setup(error.to_string()))?;
            views::member::run(&part, &leash)
        }
        command::Command::Worker(arguments) => {
            let task = serde_json::from_str(&arguments.task)
                .map_err(|error| BenchError::Arguments(format!("not a task: {error}")))?;
            // An experiment that was killed takes its processes with it.
            let _leash = Leash::attach().map_err(|error| BenchError::Setup(error.to_string()))?;
            print(out, true, &worker::run(&task)?, String::new)
        }
    }
}

fn print(
    out: &mut impl Write,
    json: bool,
    report: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), BenchError> {
    let text = if json {
        serde_json::to_string(report).map_err(|error| BenchError::Setup(error.to_string()))? + "\n"
    } else {
        wrapped(&text())
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(BenchError::Output)
}

fn multicast(arguments: &command::Multicast, out: &mut impl Write) -> Result<(), BenchError> {
    if arguments.nodes.contains(&0) {
        return Err(BenchError::Arguments("--nodes is 0: a group has at least one member".into()));
    }
    if let (command::FabricKind::Sim, Some(option)) = (arguments.fabric, arguments.device.given()) {
        return Err(LocalError::NoDevice(option).into());
    }
    let sizes = match (arguments.bytes.is_empty(), arguments.fabric) {
        (false, _) => arguments.bytes.clone(),
        (true, command::FabricKind::Sim) => vec![10_240],
        (true, _) => vec![1, 1_024, 10_240],
    };
    let runs: Vec<(u32, u16)> = sizes
        .iter()
        .flat_map(|bytes| arguments.nodes.iter().map(|nodes| (*bytes, *nodes)))
        .collect();
    let progress = Progress::new(runs.len() as u64);
    let mut rows = Vec::new();
    for (bytes, nodes) in runs {
        progress.set_message(format!("{nodes} members, {bytes} bytes"));
        rows.push(match arguments.fabric.carrier() {
            Some(carrier) => real::run(arguments, carrier, nodes, bytes)?,
            None => simulated::run(arguments, nodes, bytes)?,
        });
        progress.inc(1);
    }
    drop(progress);
    if let Some(path) = &arguments.plot {
        plot::draw(&rows, path)?;
    }
    let is_beside = arguments.probe && arguments.fabric == command::FabricKind::Tcp;
    let report = report::Report {
        machine: report::machine(),
        rows: &rows,
        iperf3: is_beside.then(iperf::run),
    };
    print(out, arguments.json, &report, || report.text())
}
