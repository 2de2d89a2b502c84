//! What a step did, why it cannot go on, and what it hands to the application.
//!
//! Requirement: TRM-3.

use super::entry::MessageId;
use super::overlay::Destinations;
use crate::memory::OutOfRow;

/// A message as it is delivered.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<'p> {
    /// Its place in the log of this group. Places of other entries lie between.
    pub place: u64,
    /// What names it in all groups.
    pub id: MessageId,
    /// All groups that deliver it.
    pub destinations: Destinations,
    /// Its bytes, lent for the call.
    pub payload: &'p [u8],
}

/// What receives the messages of a replica's group, in their order.
pub trait Application {
    /// Takes a message, and gives a byte of answer that its client sees. All replicas of the group
    /// get the same messages in the same order. Must not take longer than the time to suspect.
    fn deliver(&mut self, message: &Delivered<'_>) -> u8;
}

impl<F: FnMut(&Delivered<'_>) -> u8> Application for F {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        self(message)
    }
}

/// What one step did. All zero: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress {
    /// Events that the fabric had.
    pub events: u32,
    /// Sources that were looked at.
    pub looked: u32,
    /// Entries that were proposed.
    pub proposed: u32,
    /// Entries that were delivered, or passed over because they are for other groups.
    pub processed: u32,
    /// Messages that the application was handed.
    pub delivered: u32,
    /// Messages stored for replicas of children: one for each replica.
    pub passed_on: u32,
    /// Bytes of payloads that were copied.
    pub copied_bytes: u64,
    /// Entries that were proposed and refer to their payloads.
    pub references: u32,
    /// Payloads of such entries that were carried to a replica that lacked them.
    pub carried: u32,
    /// Payloads that a candidate fetched from another replica.
    pub fetched: u32,
    /// Entries that a candidate gave up, since nobody had the payloads to which they refer.
    pub given_up: u32,
    /// Lists that the fabric took.
    pub lists: u32,
    /// Writes in those lists.
    pub writes: u32,
    /// Peers that the fabric reported as lost.
    pub lost: u32,
    /// Writes to logs that their owners denied.
    pub denied: u32,
    /// Leaders that were granted the own log.
    pub granted: u32,
    /// Campaigns that began.
    pub campaigns: u32,
    /// How many entries this replica has delivered since its group began.
    pub delivered_total: u64,
}

impl Progress {
    /// Whether nothing was taken, copied, delivered or posted.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        let taken = self.events | self.granted | self.campaigns;
        let moved = self.proposed | self.processed | self.passed_on | self.lists;
        taken | moved == 0 && self.copied_bytes == 0
    }
}

/// Why a replica or a client cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum OpenError {
    /// The overlay has no such replica, or no such client.
    NoSuchReplica = 1,
    /// The lent state has too few parts, or too little room.
    StateTooSmall = 2,
    /// The fabric keeps no order between writes, or completes them before they are visible.
    FabricPromises = 3,
    /// The fabric's writes or guards are too short, or its lists.
    FabricTooSmall = 4,
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::NoSuchReplica => "the overlay has no such replica or client",
            Self::StateTooSmall => "too little state was lent",
            Self::FabricPromises => {
                "the fabric must keep writes in order, and complete them once they are visible"
            }
            Self::FabricTooSmall => "the fabric's writes are too small for this overlay",
        })
    }
}

impl core::error::Error for OpenError {}

/// Why a replica stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Halt {
    /// Memory that was lent does not fit the overlay.
    OutOfRow = 1,
    /// A decided entry does not continue what was delivered: a leader has misbehaved.
    NotContinued = 2,
    /// A decided entry is not in the log: a leader has misbehaved.
    NoEntry = 3,
}

impl From<OutOfRow> for Halt {
    fn from(_: OutOfRow) -> Self {
        Self::OutOfRow
    }
}

impl core::fmt::Display for Halt {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::OutOfRow => "the lent memory does not fit the overlay",
            Self::NotContinued => "a decided entry does not continue what was delivered",
            Self::NoEntry => "a decided entry is not in the log",
        })
    }
}

impl core::error::Error for Halt {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A member that has done one thing alone has not been idle: else it would fall asleep with
    /// work left.
    #[test]
    fn each_thing_that_is_done_counts_as_work() {
        let done = [
            Progress { events: 1, ..Progress::default() },
            Progress { granted: 1, ..Progress::default() },
            Progress { campaigns: 1, ..Progress::default() },
            Progress { proposed: 1, ..Progress::default() },
            Progress { processed: 1, ..Progress::default() },
            Progress { passed_on: 1, ..Progress::default() },
            Progress { lists: 1, ..Progress::default() },
            Progress { copied_bytes: 1, ..Progress::default() },
            // As often as another, as in a group of one.
            Progress { events: 1, granted: 1, ..Progress::default() },
            Progress { granted: 1, campaigns: 1, ..Progress::default() },
            Progress { proposed: 1, processed: 1, ..Progress::default() },
            Progress { processed: 1, passed_on: 1, ..Progress::default() },
            Progress { passed_on: 1, lists: 1, ..Progress::default() },
            Progress { campaigns: 1, lists: 1, ..Progress::default() },
        ];
        assert!(done.iter().all(|one| !one.is_idle()));
        assert!(Progress { delivered_total: 7, ..Progress::default() }.is_idle());
    }
}
