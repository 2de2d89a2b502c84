//! What is reported of a partner: who, what, since when.
//!
//! Requirement: HLT-1.

use crate::ids::{Rank, Time};
use crate::multicast::Impossible;

/// What became of a member. The numbers are stable, so that a health monitor can have a table of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum HealthKind {
    /// It shows a heartbeat for the first time.
    Started = 1,
    /// It has shown no new heartbeat for the timeout.
    Silent = 2,
    /// It was silent, and shows heartbeats again; its memory is what it was.
    Resumed = 3,
    /// It shows another incarnation: it has lost its memory, and takes no part any more.
    Restarted = 4,
    /// It shows that it has stopped because of this member: this one has restarted, or was silent.
    StoppedBecauseOfThis = 5,
    /// Its header fails its check, for as many steps as are waited for.
    Unreadable = 6,
    /// It published what no correct member can publish: see [`Impossible`].
    Misbehaved = 7,
}

impl HealthKind {
    /// The stable number.
    #[allow(clippy::as_conversions)]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl core::fmt::Display for HealthKind {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Started => "it shows that it lives",
            Self::Silent => "it shows no heartbeat any more",
            Self::Resumed => "it shows heartbeats again",
            Self::Restarted => "it has restarted without its memory",
            Self::StoppedBecauseOfThis => "it has stopped because of this member",
            Self::Unreadable => "its header fails its check",
            Self::Misbehaved => "it published what no correct member can",
        })
    }
}

/// Who, what, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct HealthEvent {
    /// The member.
    pub peer: Rank,
    /// What became of it.
    pub kind: HealthKind,
    /// Since when: of a silence, when the last heartbeat was seen; else when it was found.
    pub since: Time,
    /// Its incarnation, as it shows it now; of misbehaviour the number of [`Impossible`].
    pub detail: u64,
}

impl HealthEvent {
    /// What a step refused ([`Progress::refused`](crate::node::Progress::refused)), as an event.
    #[must_use]
    pub fn of_refusal((peer, what): (Rank, Impossible), now: Time) -> Self {
        let detail = u64::from(what.code());
        Self { peer, kind: HealthKind::Misbehaved, since: now, detail }
    }
}
