//! The arguments of `tramontane bench blocks`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::bench::command::FabricKind;

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
    /// Groups of the same members with different senders (Fig. 10)
    Overlap,
    /// A slow link and a delayed member among 64 (4.5)
    Delays,
}

impl Experiment {
    /// All of them, in the paper's order.
    pub const ALL: &'static [Self] =
        &[Self::Algorithms, Self::BlockSizes, Self::Scale, Self::Storage, Self::Overlap, Self::Delays];

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
    /// Which experiments [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub experiment: Vec<Experiment>,
    /// Members [default: those of the paper's figure]
    #[arg(long, value_delimiter = ',')]
    pub nodes: Vec<usize>,
    /// Megabytes (2^20) of a message, where the experiment does not vary it
    #[arg(long, default_value_t = 256)]
    pub mib: usize,
    /// Kilobytes (2^10) of a block, where the experiment does not vary it
    #[arg(long, default_value_t = 1024)]
    pub block_kib: usize,
    /// Writes of the storage experiment
    #[arg(long, default_value_t = 1000)]
    pub writes: usize,
    /// The seed of the runs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Draw milliseconds over members into this SVG file
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
