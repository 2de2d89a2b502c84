//! The arguments of `tramontane bench shards --real`.

use clap::{Args, ValueEnum};
use tramontane_fixtures::baselines::Protocol;

use crate::options::FabricKind;

/// A protocol that runs on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RealSystem {
    /// TRAM as a program runs it: each replica is a process.
    Tram,
    /// The same, and entries refer to all messages' payloads, which clients write to each replica.
    TramReferences,
    /// RamCast, batched.
    Ramcast,
    /// Skeen's protocol, batched: groups of one replica.
    Skeen,
    /// ByzCast with crash faults, batched: groups of one replica.
    Byzcast,
}

impl RealSystem {
    /// The protocol, if it is one that TRAM is compared with.
    pub(super) const fn baseline(self) -> Option<Protocol> {
        match self {
            Self::Tram | Self::TramReferences => None,
            Self::Ramcast => Some(Protocol::RamCast),
            Self::Skeen => Some(Protocol::Skeen),
            Self::Byzcast => Some(Protocol::ByzCast),
        }
    }
}

/// What is run on this machine.
#[derive(Args, Clone, Debug)]
pub struct RealArguments {
    /// Run real processes on this machine instead of the simulator
    #[arg(long, conflicts_with_all = ["experiment", "seeds", "quick", "output", "plots", "profile",
                                      "set"])]
    pub real: bool,
    /// With --real: what carries the writes
    #[arg(long, value_enum, value_delimiter = ',', requires = "real",
          default_values = ["shm", "tcp"])]
    pub fabric: Vec<FabricKind>,
    /// With --real: the protocols
    #[arg(long, value_enum, value_delimiter = ',', requires = "real",
          default_values = ["tram", "tram-references", "ramcast", "skeen", "byzcast"])]
    pub system: Vec<RealSystem>,
    /// With --real: to how many groups each message goes, and how many there are: the first is the
    /// parent of the others
    #[arg(long, value_delimiter = ',', requires = "real", default_values_t = [1_u16, 2])]
    pub destinations: Vec<u16>,
    /// With --real: how many clients there are
    #[arg(long, requires = "real", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=128))]
    pub clients: u16,
    /// With --real: messages of a client that may be unanswered under load
    #[arg(long, requires = "real", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub window: u32,
    /// With --real: messages of each client under load; a tenth of them one at a time
    #[arg(long, requires = "real", default_value_t = 200_000,
          value_parser = clap::value_parser!(u32).range(10..))]
    pub messages: u32,
    /// With --real: bytes of a message; with --kills the first of them
    #[arg(long, value_delimiter = ',', requires = "real", default_values_t = [64_u32],
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub bytes: Vec<u32>,
    /// With --real: runs of each configuration; the median counts
    #[arg(long, requires = "real", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub rounds: u64,
    /// With --real: kill the leader of one group so many times under load instead, and measure how
    /// long it is until the next leader delivers
    #[arg(long, requires = "real", default_value_t = 0)]
    pub kills: u32,
}
