//! The arguments of `tramontane bench blocks`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::disturbance::Link;
use super::real::way::Way;
use crate::bench::command::{FabricKind, Senders};
use crate::cli::options::AlgorithmName;
use crate::rdma::DeviceOptions;

/// One of the paper's experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// Algorithms beside each other, from 3 to 16 members (Fig. 4)
    Algorithms,
    /// Block sizes, 4 members (Fig. 6)
    BlockSizes,
    /// Up to 512 members (Fig. 8)
    Scale,
    /// Writes of a storage layer to three replicas of fifteen (Fig. 9)
    Storage,
    /// Groups of the same members, in which one, half or all of them send (Fig. 10)
    Overlap,
    /// A slow link and a delayed member, in the simulator among 64 (4.5)
    Delays,
}

impl Experiment {
    /// All of them, in the paper's order.
    pub const ALL: &'static [Self] = &[
        Self::Algorithms,
        Self::BlockSizes,
        Self::Scale,
        Self::Storage,
        Self::Overlap,
        Self::Delays,
    ];

    /// As it is named on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Algorithms => "algorithms",
            Self::BlockSizes => "block-sizes",
            Self::Scale => "scale",
            Self::Storage => "storage",
            Self::Overlap => "overlap",
            Self::Delays => "delays",
        }
    }
}

/// `bench blocks`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// What carries the blocks
    #[arg(long, value_enum, default_value = "sim")]
    pub fabric: FabricKind,
    /// Which experiments [default: in the simulator all; on a real fabric what the other options say]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub experiment: Vec<Experiment>,
    /// Members; several give several runs [default: the experiment's; 4 on a real fabric without one]
    #[arg(long, value_delimiter = ',')]
    pub nodes: Vec<usize>,
    /// Megabytes (2^20) of a message in the simulator, where the experiment does not vary it
    #[arg(long, default_value_t = 256)]
    pub mib: usize,
    /// Kilobytes (2^10) of a block in the simulator, where the experiment does not vary it
    #[arg(long, default_value_t = 1024)]
    pub block_kib: usize,
    /// Writes of the storage experiment, which is simulated alone
    #[arg(long, default_value_t = 1000)]
    pub writes: usize,
    /// Bytes of a message, on a real fabric; several give several runs [default: 1048576,16777216, or the experiment's]
    #[arg(long, value_delimiter = ',')]
    pub bytes: Vec<usize>,
    /// Bytes of a block, on a real fabric; several give several runs [default: what suits it, or the experiment's]
    #[arg(long, value_delimiter = ',')]
    pub block: Vec<usize>,
    /// How blocks go, on a real fabric; several give several runs [default: what suits it, or the experiment's]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) algorithm: Vec<AlgorithmName>,
    /// Sends, and receives, that a member has under way on a real fabric [default: what suits it]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub window: Option<u16>,
    /// Which members send on a real fabric, each in a group of its own with all others [default: one; all three for overlap]
    #[arg(long, value_enum)]
    pub senders: Option<Senders>,
    /// Messages of each sender that are measured in a round, on a real fabric [default: 2 GiB in all, from 3 to 200; to 5
    /// where links are limited]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub messages: Option<u64>,
    /// Links that `delays` tries at half speed, one after the other [default: of 0-1, 5-7, 32-33 and 21-53 those that are
    /// there]; over TCP
    #[arg(long, value_name = "ONE-OTHER", value_delimiter = ',')]
    pub slow_link: Vec<Link>,
    /// Members that `delays` lets pause, one after the other [default: of 0, 1 and 21 those that are there, and the last]
    #[arg(long, value_name = "MEMBER", value_delimiter = ',')]
    pub delayed: Vec<u16>,
    /// For how many blocks' time they pause, once a message has begun there; several give several runs [default: 1,4,16]
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub pause_blocks: Vec<u32>,
    /// Bytes a second that each link takes each way, over TCP [default: as many as it can; 100000000 for delays]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1_000_000..))]
    pub link_bytes_per_s: Option<u64>,
    /// Rounds of each on a real fabric, each with new processes; the median counts
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// In turn with each round over shared memory: what the machine can do without a group (--ways), and Open MPI's MPI_Bcast if
    /// it is installed
    #[arg(long)]
    pub probe: bool,
    /// Which ways to copy, or to read, stand beside the groups with --probe [default: memcpy,lent]
    #[arg(long, value_enum, value_delimiter = ',', requires = "probe")]
    pub(super) ways: Vec<Way>,
    /// Keep the processes of a real fabric on one processor each, one after the other
    #[arg(long)]
    pub pinned: bool,
    /// The seed of simulated runs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Which device carries the blocks.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Draw milliseconds over members into this SVG file; on a real fabric over whatever varies
    #[arg(long)]
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
