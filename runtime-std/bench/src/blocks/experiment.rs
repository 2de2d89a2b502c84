//! The paper's experiments with block multicasts.

use clap::ValueEnum;
use serde::Serialize;

/// One of the paper's experiments. Each has the machine of its figure, unless `--profile` names
/// one.
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
    /// Where the time of one message goes, by line and by step, and a relay that is away for 100 us
    /// (Table 1, Fig. 5); in the simulator only, as those that follow
    Breakdown,
    /// Messages of one block a second, and those of a protocol for small messages (Fig. 7, 4.6)
    Small,
    /// Polling, interrupts, or both: bandwidth and load (Fig. 11)
    Interrupts,
    /// A chain whose blocks are passed on by the cards, as with CORE-Direct (Fig. 12)
    Offload,
    /// Members whose processors are taken away now and then (4.5, 5.3)
    Preemption,
}

impl Experiment {
    /// Whether real fabrics cannot show it: it needs many hosts, or a processor, a card or
    /// interrupts of its own.
    pub(super) const fn is_simulated_only(self) -> bool {
        match self {
            Self::Algorithms | Self::BlockSizes | Self::Scale | Self::Overlap | Self::Delays => {
                false
            }
            Self::Storage
            | Self::Breakdown
            | Self::Small
            | Self::Interrupts
            | Self::Offload
            | Self::Preemption => true,
        }
    }
}
