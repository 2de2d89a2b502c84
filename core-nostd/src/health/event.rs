//! Health events: a member, its change of state, and the time.
//!
//! Requirement: HLT-1.

use crate::ids::{Rank, Time};
use crate::multicast::Impossible;

/// A change in a member's state. The numbers are stable, so that a health monitor can have a table
/// of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum HealthKind {
    /// The member has published its first heartbeat.
    Started = 1,
    /// The member has published no new heartbeat for longer than the timeout.
    Silent = 2,
    /// The member was silent and has resumed its heartbeats; its memory is intact.
    Resumed = 3,
    /// The member has published a different incarnation: it has lost its memory and no longer takes
    /// part.
    Restarted = 4,
    /// The member has published that it stopped because of this member, which has restarted or was
    /// silent.
    StoppedBecauseOfThis = 5,
    /// The member's header failed its check in too many consecutive steps.
    Unreadable = 6,
    /// The member published something that no correct member can publish: see [`Impossible`].
    Misbehaved = 7,
}

impl HealthKind {
    /// Returns the stable number of this kind.
    #[allow(clippy::as_conversions)]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl core::fmt::Display for HealthKind {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Started => "its first heartbeat has arrived",
            Self::Silent => "its heartbeats have stopped",
            Self::Resumed => "its heartbeats have resumed",
            Self::Restarted => "it has restarted without its memory",
            Self::StoppedBecauseOfThis => "it has stopped because of this member",
            Self::Unreadable => "its header fails its check",
            Self::Misbehaved => "it published something that no correct member can publish",
        })
    }
}

/// A health event of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct HealthEvent {
    /// The member.
    pub peer: Rank,
    /// Change of the member's state.
    pub kind: HealthKind,
    /// Time of the change: for a silence, when the last heartbeat was seen; otherwise, when the
    /// change was detected.
    pub since: Time,
    /// Incarnation that the member publishes now; for misbehaviour, the number of the
    /// [`Impossible`] variant.
    pub detail: u64,
}

impl HealthEvent {
    /// Converts an impossible value that a step refused
    /// ([`Progress::refused`](crate::node::Progress::refused)) to an event.
    #[must_use]
    pub fn of_refusal((peer, what): (Rank, Impossible), now: Time) -> Self {
        let detail = u64::from(what.code());
        Self { peer, kind: HealthKind::Misbehaved, since: now, detail }
    }
}
