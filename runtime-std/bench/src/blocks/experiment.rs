//! The paper's experiments with block multicasts.

use clap::ValueEnum;
use serde::Serialize;

/// One of the paper's experiments, scaled to one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// All algorithms, 3 to 8 members (Fig. 4)
    Algorithms,
    /// Several block sizes, 4 members (Fig. 6)
    BlockSizes,
    /// An increasing number of members (Fig. 8)
    Scale,
    /// Groups of the same members, in which one, half or all members send (Fig. 10)
    Overlap,
    /// A slow link and a delayed member (4.5)
    Delays,
}
