//! The arguments of `tramontane-lab bench blocks`.

use clap::Args;

use crate::options::Senders;
use tramontane_local::options::AlgorithmName;
use tramontane_runtime::carrier::Carrier;

/// Arguments of `bench blocks`.
#[derive(Args, Clone, Debug)]
pub struct BlocksArguments {
    /// The fabric
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    pub fabric: Carrier,
    /// The number of members; several values give several runs
    #[arg(long, value_delimiter = ',', default_values_t = [4_usize])]
    pub nodes: Vec<usize>,
    /// Size of a message in bytes; several values give several runs
    #[arg(long, value_delimiter = ',', default_values_t = [1_048_576_usize, 16_777_216])]
    pub bytes: Vec<usize>,
    /// Size of a block in bytes; several values give several runs [default: depends on the fabric]
    #[arg(long, value_delimiter = ',')]
    pub block: Vec<usize>,
    /// The algorithm; several values give several runs [default: depends on the fabric]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) algorithm: Vec<AlgorithmName>,
    /// Maximum number of sends, and of receives, in flight at a member [default: depends on the
    /// fabric]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub window: Option<u16>,
    /// Which members send, each in its own group with all others
    #[arg(long, value_enum, default_value = "one")]
    pub senders: Senders,
    /// Number of measured messages per sender in a round [default: 2 GiB in all, from 3 to 200]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub messages: Option<u64>,
    /// Number of rounds of each run, each with new processes; the median is reported
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Alternate each round over shared memory with a measurement of the machine's limit without a
    /// group: a memcpy at each receiver, and a read of every byte in place
    #[arg(long)]
    pub probe: bool,
    /// The device that carries the blocks.
    #[command(flatten)]
    pub device: tramontane_local::options::DeviceArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
