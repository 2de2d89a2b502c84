//! The arguments of `tramontane-lab bench shards`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use tramontane_runtime::carrier::Carrier;

/// Shown in the command's help.
pub(crate) const EXAMPLES: &str = "Examples:
    tramontane-lab bench shards
    tramontane-lab bench shards --fabric shm --system tram --destinations 1,2,8 --rounds 9 --json
    tramontane-lab bench shards --fabric shm --system tram,tram-durable --folder /srv/disk
    tramontane-lab bench shards --fabric shm --kills 50";

/// The variants of TRAM that run on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TramSystem {
    /// TRAM as programs run it: each replica is a process.
    Tram,
    /// TRAM with entries that refer to the payloads of all messages, which clients write to each
    /// replica.
    TramReferences,
    /// TRAM with replicas that save everything on a disk before it counts.
    TramDurable,
}

impl TramSystem {
    /// Returns the system's name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tram => "TRAM",
            Self::TramReferences => "TRAM, references",
            Self::TramDurable => "TRAM, durable",
        }
    }
}

/// Arguments of `bench shards`.
#[derive(Args, Clone, Debug)]
pub struct ShardsArguments {
    /// The fabrics
    #[arg(long, value_parser = tramontane_local::options::carrier(), value_delimiter = ',',
          default_values_t = [Carrier::SharedMemory, Carrier::Tcp])]
    pub fabric: Vec<Carrier>,
    /// How message payloads are transferred and kept
    #[arg(long, value_enum, value_delimiter = ',',
          default_values = ["tram", "tram-references"])]
    pub system: Vec<TramSystem>,
    /// The number of destination groups of each message, which is also the number of groups; the
    /// first is the parent of the others
    #[arg(long, value_delimiter = ',', default_values_t = [1_u16, 2])]
    pub destinations: Vec<u16>,
    /// Maximum number of unanswered messages of a client under load
    #[arg(long, default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub window: u32,
    /// Number of messages of each client under load; a tenth as many are sent one at a time
    #[arg(long, default_value_t = 200_000,
          value_parser = clap::value_parser!(u32).range(10..))]
    pub messages: u32,
    /// Size of a message in bytes; with --kills, the first size given
    #[arg(long, value_delimiter = ',', default_values_t = [64_u32],
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub bytes: Vec<u32>,
    /// Number of runs of each configuration; the median is reported
    #[arg(long, default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub rounds: u64,
    /// Instead of the rates, measure takeovers: kill the leader of one group this many times under
    /// load, and measure the time until the next leader delivers
    #[arg(long, default_value_t = 0)]
    pub kills: u32,
    /// A folder on the disk of durable replicas [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
