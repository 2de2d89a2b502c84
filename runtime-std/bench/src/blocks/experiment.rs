//! The paper's experiments with block multicasts.

use clap::ValueEnum;
use serde::Serialize;

/// One of the paper's experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// All algorithms, 3 to 16 members (Fig. 4)
    Algorithms,
    /// Several block sizes, 4 members (Fig. 6)
    BlockSizes,
    /// More and more members, up to 512 (Fig. 8)
    Scale,
    /// Writes of a storage layer to three replicas of fifteen (Fig. 9)
    Storage,
    /// Groups of the same members, in which one, half or all of them send (Fig. 10)
    Overlap,
    /// A slow link and a delayed member, in the simulator among 64 (4.5)
    Delays,
}
