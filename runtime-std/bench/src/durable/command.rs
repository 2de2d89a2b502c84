//! The arguments of `tramontane-lab bench durable`.

use std::path::PathBuf;

use clap::Args;

/// Shown in the command's help.
pub(crate) const EXAMPLES: &str = "Examples:
    tramontane-lab bench durable
    tramontane-lab bench durable --nodes 3,5 --bytes 1024,10240
    tramontane-lab bench durable --nodes 3,5 --mib 1024 --rounds 4 --folder /srv/disk --json

Each node writes --mib MiB of messages to its log. The disk needs that much space \
for each node, and the same again for the plain writers.";

/// Arguments of `bench durable`.
#[derive(Args, Clone, Debug)]
pub struct DurableArguments {
    /// The number of members, each of which logs; several values give several runs
    #[arg(long, value_delimiter = ',', default_values_t = [3_u16],
          value_parser = clap::value_parser!(u16).range(1..=16))]
    pub nodes: Vec<u16>,
    /// Size of a message in bytes; several values give several runs
    #[arg(long, value_delimiter = ',', default_values_t = [10_240_u32],
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub bytes: Vec<u32>,
    /// Size in MiB of each log when all members are killed
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    pub mib: u64,
    /// The number of parts in which the messages are sent; the plain writers take their turn after
    /// each part
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub rounds: u64,
    /// A folder on the disk to measure [default: the system's temporary folder]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
