//! `tramontane dds`: DDS topics on this machine.
//!
//! | file | subject |
//! |---|---|
//! | `gateway` | topics mirrored to other implementations of DDS |
//! | `part` | how a command takes part in a domain |
//! | `perf` | how fast topics are, with processes of this machine |
//! | `spy` | what a topic carries |

mod gateway;
mod part;
mod perf;
mod spy;

use clap::Subcommand;
use tramontane_dds::DdsError;

use super::exit::{Failure, Status};

pub(super) use perf::run_member;

pub(super) const EXAMPLES: &str =
    "  tramontane dds perf --subscribers 3 --bytes 10240 --level volatile
  tramontane dds perf --mode ping --json
  tramontane dds spy --domain flight.toml --id 4 Tracks
  tramontane dds gateway --domain flight.toml --id 0 --mirror Tracks";

/// What is done with topics.
#[derive(Subcommand, Debug)]
pub(super) enum Command {
    #[command(after_help = super::exit::help(perf::EXAMPLES))]
    Perf(perf::Arguments),
    #[command(after_help = super::exit::help(spy::EXAMPLES))]
    Spy(spy::Arguments),
    #[command(after_help = super::exit::help(gateway::EXAMPLES))]
    Gateway(gateway::Arguments),
}

/// Does it.
pub(super) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Perf(arguments) => perf::run(arguments),
        Command::Spy(arguments) => spy::run(arguments),
        Command::Gateway(arguments) => gateway::run(arguments),
    }
}

impl From<DdsError> for Failure {
    fn from(error: DdsError) -> Self {
        match error {
            DdsError::Start(error) => error.into(),
            DdsError::Ended(stopped) => stopped.into(),
            DdsError::Description(error) => error.into(),
            DdsError::System(error) => Self::system("cannot start", &error),
            DdsError::Timeout(_) => Self::with_text(Status::PeerLost, error),
            error => Self::with_text(Status::Usage, error),
        }
    }
}
