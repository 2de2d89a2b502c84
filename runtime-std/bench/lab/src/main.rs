//! The program `tramontane-lab`: measurements, plans, and the adapter of the conformance suite.
//! Users of a group do not need it.
//!
//! | file | contents |
//! |---|---|
//! | `adapter` | one member, driven by the conformance suite |
//! | `plan` | schedules of block multicasts |

mod adapter;
mod plan;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use tramontane_bench::BenchError;
use tramontane_local::exit::{Failure, Status, help};
use tramontane_local::program::{self, LogOptions, Program};

const BENCH_EXAMPLES: &str = "  tramontane-lab bench multicast --probe
  tramontane-lab bench latency
  tramontane-lab bench multicast --fabric verbs --senders one --bytes 10240
  tramontane-lab bench blocks --fabric tcp --nodes 4,8
  tramontane-lab bench record --paper spindle --seeds 1
  tramontane-lab bench views --ways kill,leave";

/// The exit statuses of benchmarks, in addition to those of every command.
const BENCH_STATUSES: [Status; 5] =
    [Status::Input, Status::Resources, Status::Group, Status::PeerLost, Status::Device];

const EXAMPLES: &str = "  tramontane-lab bench latency
  tramontane-lab plan --members 8 --blocks 4
  tramontane-conformance run --adapter 'tramontane-lab adapter' --nodes 3";

/// The laboratory of Tramontane: measurements, simulations, plans, and the adapter of the suite.
#[derive(Parser, Debug)]
#[command(name = "tramontane-lab", version, after_help = help(EXAMPLES, &[]))]
struct Lab {
    #[command(flatten)]
    log: LogOptions,
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand, Debug)]
enum LabCommand {
    /// Benchmarks of multicast, blocks, latency, idle groups and views; over shared memory, TCP or
    /// RDMA, or simulated
    #[command(subcommand, after_help = help(BENCH_EXAMPLES, &BENCH_STATUSES))]
    Bench(Box<tramontane_bench::command::Experiment>),
    #[command(after_help = help(plan::EXAMPLES, &plan::STATUSES))]
    Plan(plan::PlanOptions),
    #[command(after_help = help(adapter::EXAMPLES, &adapter::STATUSES))]
    Adapter(adapter::AdapterOptions),
}

impl Program for Lab {
    const NAME: &'static str = "tramontane-lab";

    fn log(&self) -> LogOptions {
        self.log
    }

    fn run(&self) -> Result<(), Failure> {
        match &self.command {
            LabCommand::Bench(command) => {
                let run = tramontane_bench::run(command, &mut io::stdout().lock());
                run.map_err(failure_of_bench)
            }
            LabCommand::Plan(options) => plan::run(options),
            LabCommand::Adapter(options) => adapter::run(options),
        }
    }
}

fn main() -> ExitCode {
    program::main::<Lab>()
}

fn failure_of_bench(error: BenchError) -> Failure {
    let help = "see 'tramontane-lab bench --help'";
    match error {
        BenchError::Layout(error) => error.into(),
        BenchError::Start(error) => error.into(),
        BenchError::SharedMemory(error) => error.into(),
        BenchError::Place(error) => error.into(),
        BenchError::Crew(error) => error.into(),
        BenchError::Attach(error) => error.into(),
        BenchError::Signals(error) => error.into(),
        BenchError::Stopped(stopped) => stopped.into(),
        BenchError::Broken(what) => Failure::new(Status::Disagreement, what, "please report this"),
        BenchError::Arguments(what) => Failure::usage(what, help),
        BenchError::Output(error) => Failure::output(&error),
        error @ BenchError::Disk { .. } => {
            Failure::new(Status::Resources, error, "give a folder on the disk with --folder")
        }
        error @ (BenchError::Setup(_) | BenchError::Send(_) | BenchError::Probe) => {
            Failure::other(error, help)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lab_command_line_is_well_formed() {
        <Lab as clap::CommandFactory>::command().debug_assert();
    }
}
