//! `tramontane dds`: DDS topics on this machine.
//!
//! | file | subject |
//! |---|---|
//! | `gateway` | topics mirrored to other implementations of DDS |
//! | `outside` | how a command looks at a domain without being a member |
//! | `part` | how a command takes part in a domain |
//! | `perf` | how fast topics are, with processes of this machine |
//! | `spy` | what a topic carries |
//! | `topics` | which topics there are; topics that come and go at run time |

mod gateway;
mod outside;
mod part;
mod perf;
mod spy;
mod topics;

use clap::Subcommand;
use tramontane_dds::DdsError;

use super::exit::{Failure, Status};

pub(super) use perf::run_member;

pub(super) const EXAMPLES: &str =
    "  tramontane dds perf --subscribers 3 --bytes 10240 --level volatile
  tramontane dds perf --mode ping --json
  tramontane dds spy --domain flight.toml --id 4 Tracks
  tramontane dds spy --to 10.9.0.1:7000,10.9.0.2:7000 --key-file key Tracks
  tramontane dds topics --domain flight.toml --id 4 --create Alarms --type Alarm
  tramontane dds gateway --domain flight.toml --id 0 --mirror Tracks";

/// What is done with topics.
#[derive(Subcommand, Debug)]
pub(super) enum Command {
    #[command(after_help = super::exit::help(perf::EXAMPLES))]
    Perf(perf::Arguments),
    #[command(after_help = super::exit::help(spy::EXAMPLES))]
    Spy(spy::Arguments),
    #[command(after_help = super::exit::help(topics::EXAMPLES))]
    Topics(topics::Arguments),
    #[command(after_help = super::exit::help(gateway::EXAMPLES))]
    Gateway(gateway::Arguments),
}

/// Does it.
pub(super) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Perf(arguments) => perf::run(arguments),
        Command::Spy(arguments) => spy::run(arguments),
        Command::Topics(arguments) => topics::run(arguments),
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
            DdsError::Outside(error) => error.into(),
            DdsError::NotPublished(error) => error.into(),
            DdsError::Timeout(_) | DdsError::TopicDeleted => {
                Self::with_text(Status::PeerLost, error)
            }
            DdsError::NoPlace(_) => Self::with_text(Status::Resources, error),
            error => Self::with_text(Status::Usage, error),
        }
    }
}
