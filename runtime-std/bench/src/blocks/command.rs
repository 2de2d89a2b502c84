//! The arguments of `tramontane bench blocks`.

use std::path::PathBuf;

use clap::Args;

use super::experiment::Experiment;
use super::link::Link;
use super::real::method::Method;
use crate::options::{FabricKind, Senders};
use crate::profiles::ProfileArguments;
use tramontane_local::options::AlgorithmName;

/// `bench blocks`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// What carries the blocks
    #[arg(long, value_enum, default_value = "sim")]
    pub fabric: FabricKind,
    /// The experiments to run [default: in the simulator all; on a real fabric one run for each
    /// value of the other options]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub experiment: Vec<Experiment>,
    /// The number of members; several values give several runs [default: that of the experiment;
    /// 4 on a real fabric without an experiment]
    #[arg(long, value_delimiter = ',')]
    pub nodes: Vec<usize>,
    /// Size of a message in the simulator, in MiB, unless the experiment varies it
    #[arg(long, default_value_t = 256)]
    pub mib: usize,
    /// Size of a block in the simulator, in KiB, unless the experiment varies it
    #[arg(long, default_value_t = 1024)]
    pub block_kib: usize,
    /// Writes of the storage experiment, which runs in the simulator only
    #[arg(long, default_value_t = 1000)]
    pub writes: usize,
    /// Bytes of a message on a real fabric; several values give several runs [default:
    /// 1048576,16777216, or that of the experiment]
    #[arg(long, value_delimiter = ',')]
    pub bytes: Vec<usize>,
    /// Bytes of a block on a real fabric; several values give several runs [default: that of the
    /// fabric or the experiment]
    #[arg(long, value_delimiter = ',')]
    pub block: Vec<usize>,
    /// The algorithm on a real fabric; several values give several runs [default: that of the
    /// fabric or the experiment]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) algorithm: Vec<AlgorithmName>,
    /// Sends, and receives, that a member has under way [default: that of the fabric; in the
    /// simulator 1, as in RDMC, and 2 for the delays experiment]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub window: Option<u16>,
    /// Which members send on a real fabric, each in a group of its own with all others [default:
    /// one; for the overlap experiment all three]
    #[arg(long, value_enum)]
    pub senders: Option<Senders>,
    /// Messages of each sender that a round measures on a real fabric [default: 2 GiB in all, from
    /// 3 to 200; at most 5 if links are limited]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub messages: Option<u64>,
    /// Links that the delays experiment slows to half speed, one after the other, over TCP
    /// [default: of 0-1, 5-7, 32-33 and 21-53 those that exist]
    #[arg(long, value_name = "ONE-OTHER", value_delimiter = ',')]
    pub slow_link: Vec<Link>,
    /// Members that the delays experiment pauses, one after the other [default: of 0, 1 and 21
    /// those that exist, and the last]
    #[arg(long, value_name = "MEMBER", value_delimiter = ',')]
    pub delayed: Vec<u16>,
    /// The length of a pause, in times of a block; it begins once a message has begun there;
    /// several values give several runs [default: 1,4,16]
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub pause_blocks: Vec<u32>,
    /// The limit of each link in bytes a second each way, over TCP [default: none; 100000000 for
    /// the delays experiment]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1_000_000..))]
    pub link_bytes_per_s: Option<u64>,
    /// Rounds of each run on a real fabric, each with new processes; the median counts
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// In turn with each round over shared memory, measure what the machine can do without a group
    /// (--ways)
    #[arg(long)]
    pub probe: bool,
    /// The ways to copy or to read that --probe measures [default: memcpy,lent]
    #[arg(long, value_enum, value_delimiter = ',', requires = "probe")]
    pub(super) ways: Vec<Method>,
    /// Pin the processes of a real fabric to one processor after the other
    #[arg(long)]
    pub pinned: bool,
    /// The seed of simulated runs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Seeds of the experiments breakdown and preemption, in which processors are taken away by
    /// chance: so many from --seed on; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Which machine is simulated.
    #[command(flatten)]
    pub machine: ProfileArguments,
    /// Which device carries the blocks.
    #[command(flatten)]
    pub device: tramontane_local::options::DeviceArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Draw milliseconds or bytes a second over the number of members into this SVG file; the
    /// breakdown experiment alone over its steps; on a real fabric over the option that varies
    #[arg(long, value_parser = crate::output::file)]
    pub plot: Option<PathBuf>,
}

impl Arguments {
    pub(super) fn block_bytes(&self) -> usize {
        self.block_kib << 10
    }

    pub(super) fn bytes(&self) -> usize {
        self.mib << 20
    }

    pub(super) fn members(&self, usual: &[usize]) -> Vec<usize> {
        if self.nodes.is_empty() { usual.to_vec() } else { self.nodes.clone() }
    }
}
