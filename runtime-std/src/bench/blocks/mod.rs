//! `tramontane bench blocks`: RDMC's experiments in the simulator, and block groups on real fabrics.
//!
//! | file | what it holds |
//! |---|---|
//! | `command` | the arguments |
//! | `single` | one group, one message: algorithms, block sizes, scale (the paper's figures 4, 6, 8) |
//! | `several` | many groups: a storage layer's writes, overlapping senders (figures 9, 10) |
//! | `disturbance` | which link is slow, which member is delayed, and what the paper's analysis (4.5) says of it |
//! | `analysis` | slow links and delays in the simulator |
//! | `real` | real processes over shared memory, TCP or RDMA |
//! | `report` | rows, and what the paper says of them |
//! | `plot` | rows as a drawing |

mod analysis;
pub mod command;
mod disturbance;
mod plot;
pub(in crate::bench) mod real;
mod report;
mod several;
mod single;

use std::io::Write;

use tramontane_fixtures::block_multicast::{Report, Setup, run as simulate};

use super::BenchError;
use crate::local::LocalError;
use command::{Arguments, Experiment};
use plot::Drawing;
use report::Row;

/// Runs the experiments that are asked for, and prints what came of them.
///
/// # Errors
/// [`BenchError`].
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), BenchError> {
    if let Some(carrier) = arguments.fabric.carrier() {
        return real::run(arguments, carrier, out);
    }
    check_simulated(arguments)?;
    if arguments.mib == 0 || arguments.block_kib == 0 || arguments.writes == 0 {
        return Err(BenchError::Arguments("--mib, --block-kib and --writes are at least 1".into()));
    }
    if let Some(nodes) = arguments.nodes.iter().find(|nodes| !(2..=1024).contains(*nodes)) {
        return Err(BenchError::Arguments(format!(
            "--nodes is {nodes}: from 2 to 1024 are simulated"
        )));
    }
    let chosen =
        if arguments.experiment.is_empty() { Experiment::ALL } else { &arguments.experiment[..] };
    disturbance::check(arguments, chosen, &arguments.members(analysis::NODES))?;
    let mut rows = Vec::new();
    for experiment in chosen {
        rows.extend(match experiment {
            Experiment::Algorithms => single::algorithms(arguments)?,
            Experiment::BlockSizes => single::block_sizes(arguments)?,
            Experiment::Scale => single::scale(arguments)?,
            Experiment::Storage => several::storage(arguments)?,
            Experiment::Overlap => several::overlap(arguments)?,
            Experiment::Delays => analysis::delays(arguments)?,
        });
    }
    if let Some(path) = &arguments.plot {
        Drawing::simulated(&rows)?.write(path)?;
    }
    super::print(
        out,
        arguments.json,
        &report::Printed { seed: arguments.seed, rows: &rows },
        || report::text(&rows),
    )
}

/// Whether nothing is asked for that only real fabrics have.
fn check_simulated(arguments: &Arguments) -> Result<(), BenchError> {
    let given = [
        ("--bytes", !arguments.bytes.is_empty()),
        ("--block", !arguments.block.is_empty()),
        ("--algorithm", !arguments.algorithm.is_empty()),
        ("--window", arguments.window.is_some()),
        ("--messages", arguments.messages.is_some()),
        ("--senders", arguments.senders.is_some()),
        ("--link-bytes-per-s", arguments.link_bytes_per_s.is_some()),
        ("--probe", arguments.probe),
        ("--pinned", arguments.pinned),
    ];
    if let Some(option) = arguments.device.given() {
        return Err(LocalError::NoDevice(option).into());
    }
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(BenchError::Arguments(format!(
            "{option} is of real fabrics: leave it out, or give --fabric shm, tcp or verbs"
        ))),
        None => Ok(()),
    }
}

/// Runs a setup in which nothing may go wrong.
fn simulated(setup: &Setup) -> Result<Report, BenchError> {
    let report = simulate(setup);
    match report.faults.first() {
        None => Ok(report),
        Some(fault) => Err(BenchError::Setup(format!("the simulated run went wrong: {fault}"))),
    }
}

/// A row for one message in one group.
fn single_row(experiment: Experiment, setup: &Setup) -> Result<Row, BenchError> {
    let report = simulated(setup)?;
    let latency_ns = report.groups[0].latency_ns(0).unwrap_or(0);
    Ok(Row::of_message(experiment, setup, latency_ns, report.groups[0].skew_ns(0).unwrap_or(0)))
}
