//! Runs the block experiments that are asked for.

use std::io::Write;

use clap::ValueEnum as _;

use super::command::Arguments;
use super::experiment::Experiment;
use super::{
    analysis, breakdown, disturbance, interrupts, offload, preemption, real, report, several,
    single, small,
};
use crate::error::BenchError;
use crate::progress::Progress;
use tramontane_local::group::LocalError;
use tramontane_local::options;
use tramontane_local::print::print;

/// Runs the experiments that are asked for, and prints what came of them.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), BenchError> {
    if let Some(carrier) = arguments.fabric.carrier() {
        arguments.machine.refuse()?;
        return real::run::run(arguments, carrier, out);
    }
    check_simulated(arguments)?;
    if arguments.mib == 0 || arguments.block_kib == 0 || arguments.writes == 0 {
        return Err(BenchError::Arguments(
            "--mib, --block-kib and --writes must be at least 1".into(),
        ));
    }
    if let Some(nodes) = arguments.nodes.iter().find(|nodes| !(2..=1024).contains(*nodes)) {
        return Err(BenchError::Arguments(format!(
            "--nodes is {nodes}: from 2 to 1024 are simulated"
        )));
    }
    let chosen = if arguments.experiment.is_empty() {
        Experiment::value_variants()
    } else {
        &arguments.experiment[..]
    };
    disturbance::check(arguments, chosen, &arguments.members(analysis::NODES))?;
    let mut rows = Vec::new();
    let progress = Progress::cleared_by_signals(chosen.len() as u64);
    for experiment in chosen {
        progress.set_message(options::name(experiment));
        rows.extend(match experiment {
            Experiment::Algorithms => single::algorithms(arguments)?,
            Experiment::BlockSizes => single::block_sizes(arguments)?,
            Experiment::Scale => single::scale(arguments)?,
            Experiment::Storage => several::storage(arguments)?,
            Experiment::Overlap => several::overlap(arguments)?,
            Experiment::Delays => analysis::delays(arguments)?,
            Experiment::Breakdown => breakdown::breakdown(arguments)?,
            Experiment::Small => small::small(arguments)?,
            Experiment::Interrupts => interrupts::interrupts(arguments)?,
            Experiment::Offload => offload::offload(arguments)?,
            Experiment::Preemption => preemption::preemption(arguments)?,
        });
        progress.inc(1);
    }
    drop(progress);
    if let Some(path) = &arguments.plot {
        let drawing = match chosen {
            [Experiment::Breakdown] => breakdown::drawing(arguments)?,
            _ => report::drawing(&rows)?,
        };
        drawing.write(path)?;
    }
    let printed = report::Printed { seed: arguments.seed, rows: &rows };
    Ok(print(out, arguments.json, &printed, |printed| report::text(printed.rows))?)
}

/// Whether nothing is asked for that only real fabrics have.
fn check_simulated(arguments: &Arguments) -> Result<(), BenchError> {
    let given = [
        ("--bytes", !arguments.bytes.is_empty()),
        ("--block", !arguments.block.is_empty()),
        ("--algorithm", !arguments.algorithm.is_empty()),
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
