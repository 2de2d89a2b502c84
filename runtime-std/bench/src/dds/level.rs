//! The levels of a topic, and what each is to a simulated run.

use serde::Serialize;
use tramontane_core::layout::Delivery;
use tramontane_fixtures::derecho::Storage;

/// A level of the paper's DDS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Unordered,
    Atomic,
    Volatile,
    Logged,
}

impl Level {
    pub(super) const ALL: [Self; 4] = [Self::Unordered, Self::Atomic, Self::Volatile, Self::Logged];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Unordered => "unordered",
            Self::Atomic => "atomic",
            Self::Volatile => "volatile",
            Self::Logged => "logged",
        }
    }

    /// Whether samples wait until all members have them.
    pub(super) const fn delivery(self) -> Delivery {
        match self {
            Self::Unordered => Delivery::Unordered,
            Self::Atomic | Self::Volatile | Self::Logged => Delivery::Ordered,
        }
    }

    /// Where members keep them.
    pub(super) const fn storage(self) -> Storage {
        match self {
            Self::Unordered | Self::Atomic => Storage::Nowhere,
            Self::Volatile => Storage::Memory,
            Self::Logged => Storage::Disk,
        }
    }
}

/// Whose protocol runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum System {
    /// Derecho as the paper found it.
    Baseline,
    /// Derecho with the paper's techniques.
    Spindle,
    /// This project's core with its techniques switched off.
    CoreBaseline,
    /// This project's core.
    Core,
}

impl System {
    pub(super) const ALL: [Self; 4] =
        [Self::Baseline, Self::Spindle, Self::CoreBaseline, Self::Core];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "Derecho, baseline",
            Self::Spindle => "Derecho with Spindle",
            Self::CoreBaseline => "our core without the techniques",
            Self::Core => "our core",
        }
    }
}
