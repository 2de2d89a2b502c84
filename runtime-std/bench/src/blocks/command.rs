//! The arguments of `tramontane-lab bench blocks`.

use clap::Args;

use super::experiment::Experiment;
use super::link::MemberLink;
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
    /// The experiments to run [default: one run for each value of the other options]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub experiment: Vec<Experiment>,
    /// The number of members; several values give several runs [default: depends on the experiment;
    /// 4 without an experiment]
    #[arg(long, value_delimiter = ',')]
    pub nodes: Vec<usize>,
    /// Size of a message in bytes; several values give several runs [default: 1048576,16777216, or
    /// depends on the experiment]
    #[arg(long, value_delimiter = ',')]
    pub bytes: Vec<usize>,
    /// Size of a block in bytes; several values give several runs [default: depends on the fabric
    /// or the experiment]
    #[arg(long, value_delimiter = ',')]
    pub block: Vec<usize>,
    /// The algorithm; several values give several runs [default: depends on the fabric or the
    /// experiment]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) algorithm: Vec<AlgorithmName>,
    /// Maximum number of sends, and of receives, in flight at a member [default: depends on the
    /// fabric]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub window: Option<u16>,
    /// Which members send, each in its own group with all others [default: one; all three for the
    /// overlap experiment]
    #[arg(long, value_enum)]
    pub senders: Option<Senders>,
    /// Number of measured messages per sender in a round [default: 2 GiB in all, from 3 to 200; at
    /// most 5 if links are limited]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub messages: Option<u64>,
    /// Links that the delays experiment slows to half speed, one at a time, over TCP [default:
    /// those of 0-1 and 5-7 that exist]
    #[arg(long, value_name = "ONE-OTHER", value_delimiter = ',')]
    pub slow_link: Vec<MemberLink>,
    /// Members that the delays experiment pauses, one at a time [default: 0, 1 and the last]
    #[arg(long, value_name = "MEMBER", value_delimiter = ',')]
    pub delayed: Vec<u16>,
    /// The length of a pause, in block times; the pause begins once a message has begun at the
    /// member; several values give several runs [default: 1,4,16]
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub pause_blocks: Vec<u32>,
    /// The limit of each link in bytes per second in each direction, over TCP [default: none;
    /// 100000000 for the delays experiment]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1_000_000..))]
    pub link_bytes_per_s: Option<u64>,
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

impl BlocksArguments {
    pub(super) fn members(&self, usual: &[usize]) -> Vec<usize> {
        if self.nodes.is_empty() { usual.to_vec() } else { self.nodes.clone() }
    }
}
