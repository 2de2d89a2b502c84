//! The program `tramontane-dds`: shows the samples of DDS topics, and measures their speed.
//!
//! | file | subject |
//! |---|---|
//! | `gateway` | topics mirrored to other implementations of DDS |
//! | `outside` | access of a command to a domain without being a member |
//! | `part` | participation of a command in a domain |
//! | `perf` | measurement of topics, with processes on this machine |
//! | `spy` | printing of a topic's samples |
//! | `topics` | listing, creation and deletion of topics |

mod gateway;
mod outside;
mod part;
mod perf;
mod spy;
mod topics;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use tramontane_local::exit::{Failure, help};
use tramontane_local::program::{self, LogOptions, Program};

const EXAMPLES: &str = "  tramontane-dds perf --subscribers 3 --bytes 10240 --level volatile
  tramontane-dds perf --mode ping --json
  tramontane-dds spy --domain flight.toml --id 4 Tracks
  tramontane-dds spy --to 10.9.0.1:7000,10.9.0.2:7000 --key-file key Tracks
  tramontane-dds topics --domain flight.toml --id 4 --create Alarms --type Alarm
  tramontane-dds gateway --domain flight.toml --id 0 --mirror Tracks";

/// Topics of DDS with one order over all writers: measure them on this machine, print their
/// samples, create and delete them, and mirror them to other implementations of DDS.
#[derive(Parser, Debug)]
#[command(name = "tramontane-dds", version, after_help = help(EXAMPLES, &[]))]
struct CommandLine {
    #[command(flatten)]
    log: LogOptions,
    #[command(subcommand)]
    command: DdsCommand,
}

/// The commands for topics.
#[derive(Subcommand, Debug)]
enum DdsCommand {
    #[command(after_help = help(perf::EXAMPLES, &perf::STATUSES))]
    Perf(perf::PerfOptions),
    #[command(after_help = help(spy::EXAMPLES, &spy::STATUSES))]
    Spy(spy::SpyOptions),
    #[command(after_help = help(topics::EXAMPLES, &topics::STATUSES))]
    Topics(topics::TopicsOptions),
    #[command(after_help = help(gateway::EXAMPLES, &gateway::STATUSES))]
    Gateway(gateway::GatewayCommand),
    #[command(hide = true)]
    PerfMember { task: String },
}

impl Program for CommandLine {
    const NAME: &'static str = "tramontane-dds";

    fn log(&self) -> LogOptions {
        self.log
    }

    fn run(&self) -> Result<(), Failure> {
        match &self.command {
            DdsCommand::Perf(options) => perf::run(options),
            DdsCommand::Spy(options) => spy::run(options),
            DdsCommand::Topics(options) => topics::run(options),
            DdsCommand::Gateway(options) => gateway::run(options),
            DdsCommand::PerfMember { task } => perf::run_member(task),
        }
    }
}

fn main() -> ExitCode {
    program::main::<CommandLine>()
}
