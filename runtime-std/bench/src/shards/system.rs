//! The protocols that are measured, and their variants.

use serde::Serialize;
use tramontane_fixtures::baselines::Protocol;

use super::tree::Tree;

/// A protocol, as it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum System {
    /// TRAM over a tree.
    Tram(Tree, Switches),
    /// One of those that it is compared with.
    Baseline { protocol: Protocol, batching: bool },
}

/// What this project adds to TRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Switches {
    pub(super) batching: bool,
    pub(super) passes_on_early: bool,
    /// Of a child, the leader alone is written to.
    pub(super) serves_leaders_alone: bool,
    /// Entries refer to large payloads, which clients give to all replicas (TRM-9).
    pub(super) references: bool,
}

impl Switches {
    /// TRAM as the paper has it.
    pub(super) const PAPER: Self = Self {
        batching: false,
        passes_on_early: false,
        serves_leaders_alone: false,
        references: false,
    };
    /// Messages are passed on while they are replicated.
    pub(super) const EARLY: Self = Self { passes_on_early: true, ..Self::PAPER };
    /// A step takes all that is there.
    pub(super) const BATCHING: Self = Self { batching: true, ..Self::PAPER };
    /// Messages are passed on to the leaders of children alone.
    pub(super) const LEADERS: Self = Self { serves_leaders_alone: true, ..Self::PAPER };
    /// All three.
    pub(super) const ALL: Self = Self {
        batching: true,
        passes_on_early: true,
        serves_leaders_alone: true,
        references: false,
    };
    /// All three, and references to large payloads.
    pub(super) const REFERENCES: Self = Self { references: true, ..Self::ALL };

    /// The paper's, each switch alone, and all.
    pub(super) const EACH: [Self; 5] =
        [Self::PAPER, Self::EARLY, Self::BATCHING, Self::LEADERS, Self::ALL];

    /// The paper's, and all.
    pub(super) const ENDS: [Self; 2] = [Self::PAPER, Self::ALL];

    /// The paper's, all, and those that large payloads are measured with.
    pub(super) const OF_PAYLOADS: [Self; 3] = [Self::PAPER, Self::ALL, Self::REFERENCES];

    const fn name(self) -> &'static str {
        if self.references {
            return "references";
        }
        match (self.batching, self.passes_on_early, self.serves_leaders_alone) {
            (false, false, false) => "paper",
            (false, true, false) => "early",
            (true, false, false) => "batching",
            (false, false, true) => "leaders",
            _ => "all",
        }
    }
}

impl System {
    /// RamCast as the papers have it.
    pub(super) const RAMCAST: Self =
        Self::Baseline { protocol: Protocol::RamCast, batching: false };
    /// RamCast whose steps take all that is there.
    pub(super) const RAMCAST_BATCHED: Self =
        Self::Baseline { protocol: Protocol::RamCast, batching: true };
    /// Skeen's protocol, by messages.
    pub(super) const SKEEN: Self = Self::Baseline { protocol: Protocol::Skeen, batching: false };
    /// ByzCast with crash faults, by messages.
    pub(super) const BYZCAST: Self =
        Self::Baseline { protocol: Protocol::ByzCast, batching: false };

    /// As it is named in tables.
    pub(super) fn name(self) -> String {
        match self {
            Self::Tram(tree, switches) => format!("TRAM {}, {}", tree.name(), switches.name()),
            Self::Baseline { protocol, batching: false } => protocol.name().into(),
            Self::Baseline { protocol, batching: true } => format!("{}, batching", protocol.name()),
        }
    }

    /// The tree that its overlay has: of ByzCast the paper takes the base tree (8.6). Protocols
    /// without a tree take no notice of it.
    pub(super) const fn tree(self) -> Tree {
        match self {
            Self::Tram(tree, _) => tree,
            Self::Baseline { .. } => Tree::Base,
        }
    }

    /// Whether its processes talk by messages, through the kernel.
    pub(super) const fn is_message_passing(self) -> bool {
        match self {
            Self::Tram(..) => false,
            Self::Baseline { protocol, .. } => !protocol.is_replicated(),
        }
    }
}
