//! A count that a peer publishes, as last seen. The count must grow, and must stay within what the
//! peer can have reached.
//!
//! Requirement: FLT-1.

use crate::check::STEPS_UNREADABLE;
use crate::ids::Rank;

/// A value that no correct member publishes. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Impossible {
    /// A slot's counter has a round that its sender cannot have reached.
    Round = 1,
    /// A slot holds an older message than before.
    OlderMessage = 2,
    /// A slot holds more bytes than a message can have, or a large message where none are allowed.
    Length = 3,
    /// A slot changed between receipt and delivery.
    SlotChanged = 4,
    /// More rounds were used in silence than is possible.
    Silence = 5,
    /// A count shrank.
    Shrunk = 6,
    /// A member has received more than was sent.
    Received = 7,
    /// A member has delivered a message that not every member has received.
    Delivered = 8,
    /// A member has consumed more than was sent.
    Consumed = 9,
    /// A cell failed its check in [`STEPS_UNREADABLE`] consecutive steps.
    CellCheck = 10,
    /// A slot failed its check in [`STEPS_UNREADABLE`] consecutive steps.
    SlotCheck = 11,
}

impl Impossible {
    /// Returns the stable number of this kind.
    #[allow(clippy::as_conversions)]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl core::fmt::Display for Impossible {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Round => "a slot has a round that its sender cannot have reached",
            Self::OlderMessage => "a slot holds an older message than before",
            Self::Length => "a slot holds more bytes than a message can have",
            Self::SlotChanged => "a slot changed between receipt and delivery",
            Self::Silence => "more rounds were used in silence than is possible",
            Self::Shrunk => "a count shrank",
            Self::Received => "a member has received more than was sent",
            Self::Delivered => {
                "a member has delivered a message that not every member has received"
            }
            Self::Consumed => "a member has consumed more than was sent",
            Self::CellCheck => "a cell fails its check",
            Self::SlotCheck => "a slot fails its check",
        })
    }
}

impl core::error::Error for Impossible {}

/// A member that published an impossible value, and the value's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) rank: Rank,
    pub(crate) what: Impossible,
}

/// A member published something that no correct member can publish. The group must continue without
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Misbehaved(pub Rank);

impl From<Refused> for Misbehaved {
    fn from(refused: Refused) -> Self {
        Self(refused.rank)
    }
}

/// The number of consecutive steps in which a check failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) struct Unreadable(u32);

impl Unreadable {
    /// No check has failed.
    pub(crate) const NONE: Self = Self(0);

    /// Counts a step in which a check failed, or resets the count to zero.
    ///
    /// # Errors
    /// Fails if checks have failed in `STEPS_UNREADABLE` consecutive steps.
    #[inline]
    pub(crate) const fn count(&mut self, failed: bool) -> Result<(), ()> {
        if !failed {
            self.0 = 0;
            return Ok(());
        }
        self.0 = self.0.saturating_add(1);
        if self.0 >= STEPS_UNREADABLE { Err(()) } else { Ok(()) }
    }

    /// Returns whether a check failed in the last step.
    pub(crate) const fn is_waiting(self) -> bool {
        self.0 > 0
    }
}

/// A peer's count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    /// Value as last seen.
    pub(crate) count: u64,
    unreadable: Unreadable,
}

impl Watched {
    /// No value has been seen yet.
    pub(crate) const ZERO: Self = Self { count: 0, unreadable: Unreadable::NONE };

    /// Records the current value of a cell, or `None` if the cell fails its check. `most` is the
    /// largest value that the peer can have reached, and `beyond` is the error for a larger value.
    ///
    /// # Errors
    /// Fails if the count has shrunk, is larger than possible, or has failed its check for too
    /// long. The recorded count then remains unchanged.
    #[inline]
    pub(crate) fn look(
        &mut self,
        shown: Option<u64>,
        most: u64,
        beyond: Impossible,
    ) -> Result<(), Impossible> {
        if self.unreadable.count(shown.is_none()).is_err() {
            return Err(Impossible::CellCheck);
        }
        let Some(shown) = shown else { return Ok(()) };
        if shown < self.count {
            return Err(Impossible::Shrunk);
        }
        if shown > most {
            return Err(beyond);
        }
        self.count = shown;
        Ok(())
    }

    /// Returns whether the cell failed its check in the last step.
    pub(crate) const fn is_unreadable(self) -> bool {
        self.unreadable.is_waiting()
    }
}
