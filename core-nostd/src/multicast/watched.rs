//! A count that a peer publishes, as it was last seen: it must grow, and stay within what the peer
//! can have reached.
//!
//! Requirement: FLT-1.

use crate::check::STEPS_UNREADABLE;
use crate::ids::Rank;

/// What no correct member publishes. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Impossible {
    /// A slot's counter names a round that its sender cannot have reached.
    Round = 1,
    /// A slot holds an older message than the one that it held before.
    OlderMessage = 2,
    /// A slot holds more bytes than a message has, or a large message where there are none.
    Length = 3,
    /// A slot changed between receipt and delivery.
    SlotChanged = 4,
    /// More rounds were used in silence than can be.
    Silence = 5,
    /// A count shrank.
    Shrunk = 6,
    /// A member has received more than was sent.
    Received = 7,
    /// A member has delivered more than everybody has.
    Delivered = 8,
    /// A member has consumed more than was sent.
    Consumed = 9,
    /// A cell failed its check in [`STEPS_UNREADABLE`] steps in a row.
    CellCheck = 10,
    /// A slot failed its check in [`STEPS_UNREADABLE`] steps in a row.
    SlotCheck = 11,
}

impl Impossible {
    /// The stable number.
    #[allow(clippy::as_conversions)]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl core::fmt::Display for Impossible {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Round => "a slot names a round that its sender cannot have reached",
            Self::OlderMessage => "a slot holds an older message than it held before",
            Self::Length => "a slot holds more bytes than a message has",
            Self::SlotChanged => "a slot changed between receipt and delivery",
            Self::Silence => "more rounds were used in silence than can be",
            Self::Shrunk => "a count shrank",
            Self::Received => "a member has received more than was sent",
            Self::Delivered => "a member has delivered more than everybody has",
            Self::Consumed => "a member has consumed more than was sent",
            Self::CellCheck => "a cell fails its check",
            Self::SlotCheck => "a slot fails its check",
        })
    }
}

impl core::error::Error for Impossible {}

/// Who published something impossible, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) rank: Rank,
    pub(crate) what: Impossible,
}

/// A sender published something that no correct member can publish. The group must go on without
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Misbehaved(pub Rank);

impl From<Refused> for Misbehaved {
    fn from(refused: Refused) -> Self {
        Self(refused.rank)
    }
}

/// Steps in a row in which something failed its check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) struct Unreadable(u32);

impl Unreadable {
    /// Nothing has failed.
    pub(crate) const NONE: Self = Self(0);

    /// Counts a step in which something failed its check, or starts again from zero.
    ///
    /// # Errors
    /// It has failed in as many steps in a row as are waited for.
    #[inline]
    pub(crate) const fn count(&mut self, failed: bool) -> Result<(), ()> {
        if !failed {
            self.0 = 0;
            return Ok(());
        }
        self.0 = self.0.saturating_add(1);
        if self.0 >= STEPS_UNREADABLE { Err(()) } else { Ok(()) }
    }

    /// Whether something failed its check in the last step.
    pub(crate) const fn is_waiting(self) -> bool {
        self.0 > 0
    }
}

/// A count of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    /// As it was last seen.
    pub(crate) count: u64,
    unreadable: Unreadable,
}

impl Watched {
    /// Nothing was seen yet.
    pub(crate) const ZERO: Self = Self { count: 0, unreadable: Unreadable::NONE };

    /// Takes in what a cell shows now; nothing if it fails its check. `most` is what the peer can
    /// have reached, and `beyond` what is wrong with more.
    ///
    /// # Errors
    /// It shrank, is more than it can be, or has failed its check for too long. Then the count
    /// stays as it was.
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

    /// Whether its cell failed its check in the last step.
    pub(crate) const fn is_unreadable(self) -> bool {
        self.unreadable.is_waiting()
    }
}
