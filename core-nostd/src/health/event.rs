//! Health events: the partner, its change of state, and the time.
//!
//! Requirement: HLT-1.

use crate::ids::{Rank, Time};
use crate::multicast::Impossible;

/// A change in a member's state. The numbers are stable, so a health monitor can have a table of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum HealthKind {
    /// It shows a heartbeat for the first time.
    Started = 1,
    /// It has shown no new heartbeat for longer than the timeout.
    Silent = 2,
    /// It was silent and shows heartbeats again; its memory is intact.
    Resumed = 3,
    /// It shows another incarnation: it has lost its memory and no longer takes part.
    Restarted = 4,
    /// It shows that it has stopped because of this member, which has restarted or was silent.
    StoppedBecauseOfThis = 5,
    /// Its header failed its check in too many consecutive steps.
    Unreadable = 6,
    /// It published something that no correct member can publish: see [`Impossible`].
    Misbehaved = 7,
}

impl HealthKind {
    /// Returns the stable number.
    #[allow(clippy::as_conversions)]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl core::fmt::Display for HealthKind {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Started => "it shows its first heartbeat",
            Self::Silent => "it no longer shows a heartbeat",
            Self::Resumed => "it shows heartbeats again",
            Self::Restarted => "it has restarted without its memory",
            Self::StoppedBecauseOfThis => "it has stopped because of this member",
            Self::Unreadable => "its header fails its check",
            Self::Misbehaved => "it published something that no correct member can",
        })
    }
}

/// An event of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct HealthEvent {
    /// The member.
    pub peer: Rank,
    /// Change of its state.
    pub kind: HealthKind,
    /// Time of the change: for a silence, when the last heartbeat was seen; otherwise, when the
    /// change was detected.
    pub since: Time,
    /// Incarnation that the member shows now; for misbehaviour, the number of [`Impossible`].
    pub detail: u64,
}

impl HealthEvent {
    /// Converts a refusal of a step ([`Progress::refused`](crate::node::Progress::refused)) to an
    /// event.
    #[must_use]
    pub fn of_refusal((peer, what): (Rank, Impossible), now: Time) -> Self {
        let detail = u64::from(what.code());
        Self { peer, kind: HealthKind::Misbehaved, since: now, detail }
    }
}
