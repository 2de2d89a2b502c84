//! The four durability levels of a topic (Spindle IV-F).

use serde::{Deserialize, Serialize};

use crate::qos::{AccessScope, Durability, Presentation};

/// The guarantees of a topic. Each level includes those of the previous one.
///
/// ```
/// use tramontane_dds::{Durability, Level};
/// assert_eq!(Level::Volatile.durability(), Durability::Transient);
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Samples are delivered on receipt, in the order of each writer. If a member dies, members may
    /// disagree about the last samples that it wrote.
    Unordered,
    /// One order over all writers, the same for all readers: a sample is delivered by all surviving
    /// members or by none.
    #[default]
    Atomic,
    /// In addition, the members keep samples in memory for late readers.
    Volatile,
    /// In addition, each member logs its deliveries on disk. Participants must be started with a
    /// folder for the log (`StartOptions::data`).
    Logged,
}

impl Level {
    /// Returns DDS's durability for this level. DDS's `VOLATILE` keeps nothing; Spindle's level of
    /// that name corresponds to DDS's `TRANSIENT`.
    #[must_use]
    pub const fn durability(self) -> Durability {
        match self {
            Self::Unordered | Self::Atomic => Durability::Volatile,
            Self::Volatile => Durability::Transient,
            Self::Logged => Durability::Persistent,
        }
    }

    /// Returns the order that this level provides.
    #[must_use]
    pub const fn presentation(self) -> Presentation {
        match self {
            Self::Unordered => Presentation {
                access_scope: AccessScope::Instance,
                coherent_access: false,
                ordered_access: false,
            },
            Self::Atomic | Self::Volatile | Self::Logged => Presentation {
                access_scope: AccessScope::Topic,
                coherent_access: false,
                ordered_access: true,
            },
        }
    }

    /// Returns whether samples are kept for late readers.
    #[must_use]
    pub const fn keeps(self) -> bool {
        matches!(self, Self::Volatile | Self::Logged)
    }

    /// Returns the level's name in domain files and command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unordered => "unordered",
            Self::Atomic => "atomic",
            Self::Volatile => "volatile",
            Self::Logged => "logged",
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}
