//! The runs that produce figures. Equal cases share one run.

use serde::Deserialize;
use toml::Table;

use super::leader_change::LeaderChange;
use super::overlay::Ordered;
use super::sending::Sending;
use super::transfer::{Breakdown, Storage, Transfer};
use super::writes::Writes;
use crate::error::BenchError;

/// A run as described by a table. `run` is its kind, and the other fields depend on the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(tag = "run", rename_all = "kebab-case")]
pub(super) enum Case {
    /// Small messages in order.
    Sending(Sending),
    /// Large messages in blocks.
    Transfer(Transfer),
    /// The breakdown of a transfer's time (RDMC Table 1, Fig. 5).
    Breakdown(Breakdown),
    /// A storage layer's writes to three replicas of fifteen, all by one algorithm (RDMC Fig. 9).
    Storage(Storage),
    /// Messages to several groups of an overlay.
    Overlay(Ordered),
    /// Writes to several peers, without a protocol (TRAM Fig. 2).
    Writes(Writes),
    /// All leaders crash at once (TRAM Table 1).
    LeaderChange(LeaderChange),
}

impl Case {
    /// Parses a table.
    ///
    /// # Errors
    /// [`BenchError::Arguments`].
    pub(super) fn of(table: Table) -> Result<Self, BenchError> {
        let words = format!("{table:?}");
        let case = table.try_into().map_err(|error: toml::de::Error| {
            BenchError::Arguments(format!(
                "the table is not a valid case: {}: {words}",
                error.message()
            ))
        })?;
        Ok(match case {
            Self::Overlay(ordered) => Self::Overlay(ordered.drawn()),
            case => case,
        })
    }

    /// Returns whether the record's seed has no effect.
    pub(super) const fn has_own_seed(&self) -> bool {
        matches!(self, Self::LeaderChange(_))
    }
}
