//! The report of a step, the reasons why a replica stops, and the messages handed to the
//! application.
//!
//! Requirement: TRM-3.

use super::entry::MessageId;
use super::overlay::Destinations;
use crate::memory::OutOfRow;

/// A message on delivery.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<'p> {
    /// Log index in this group. Other entries have indices in between.
    pub place: u64,
    /// Name of the message in all groups.
    pub id: MessageId,
    /// All groups that deliver the message.
    pub destinations: Destinations,
    /// Payload, which is lent only for the duration of the call.
    pub payload: &'p [u8],
}

/// The application of a replica, which receives the messages for the replica's group in order.
pub trait ShardApplication {
    /// Receives a message, and returns one byte as an answer for its client. All replicas of the
    /// group receive the same messages in the same order. The call must not take longer than the
    /// suspicion timeout.
    fn deliver(&mut self, message: &Delivered<'_>) -> u8;

    /// Returns the answer to the message just delivered, for its client, in addition to the byte.
    /// If it is longer than the [limit](super::Overlay::answer_max), the client receives only its
    /// length and its first bytes (TRM-7).
    fn answer(&self) -> &[u8] {
        &[]
    }
}

impl<F: FnMut(&Delivered<'_>) -> u8> ShardApplication for F {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        self(message)
    }
}

/// The results of one step. If all fields are zero, nothing was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress {
    /// Number of events taken from the fabric.
    pub events: u32,
    /// Number of sources examined.
    pub looked: u32,
    /// Number of entries proposed.
    pub proposed: u32,
    /// Number of entries that were delivered, or skipped because they are for other groups.
    pub processed: u32,
    /// Number of messages handed to the application.
    pub delivered: u32,
    /// Number of messages stored for replicas of children, counted separately for each replica.
    pub passed_on: u32,
    /// Number of payload bytes copied.
    pub copied_bytes: u64,
    /// Number of proposed entries that refer to their payloads.
    pub references: u32,
    /// Number of payloads of such entries that were carried to a replica that lacked them.
    pub carried: u32,
    /// Number of payloads that a candidate fetched from another replica.
    pub fetched: u32,
    /// Number of entries that a candidate gave up because no replica had the payloads to which they
    /// refer.
    pub given_up: u32,
    /// Number of lists that the fabric accepted.
    pub lists: u32,
    /// Number of writes in those lists.
    pub writes: u32,
    /// Number of peers that the fabric reported as lost.
    pub lost: u32,
    /// Number of writes to logs that their owners denied.
    pub denied: u32,
    /// Number of grants of the local log to leaders.
    pub granted: u32,
    /// Number of campaigns that this replica has begun.
    pub campaigns: u32,
    /// Number of entries that this replica has delivered since its group began.
    pub delivered_total: u64,
}

impl Progress {
    /// Returns whether nothing was taken, copied, delivered or posted.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        let taken = self.events | self.granted | self.campaigns;
        let moved = self.proposed | self.processed | self.passed_on | self.lists;
        taken | moved == 0 && self.copied_bytes == 0
    }
}

/// Reason why a replica or a client cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum OpenError {
    /// The overlay has no such replica, or no such client.
    NoSuchReplica = 1,
    /// The lent state has too few elements or too little room.
    StateTooSmall = 2,
    /// The fabric does not keep writes in order.
    FabricPromises = 3,
    /// The fabric's writes, guards or lists are too short.
    FabricTooSmall = 4,
    /// The overlay uses references, whose payloads a durable replica could not save.
    References = 5,
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::NoSuchReplica => "the overlay has no such replica or client",
            Self::StateTooSmall => "the lent state is too small for the overlay",
            Self::FabricPromises => "the fabric must keep writes in order",
            Self::FabricTooSmall => "the fabric accepts too few writes or bytes for this overlay",
            Self::References => "a durable replica cannot save the payloads of references",
        })
    }
}

impl core::error::Error for OpenError {}

/// Reason why a replica stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Halt {
    /// The lent memory does not fit the overlay.
    OutOfRow = 1,
    /// A decided entry does not continue what has been delivered: a leader has misbehaved.
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
            Self::NotContinued => "a decided entry does not follow the delivered ones",
            Self::NoEntry => "a decided entry is not in the log",
        })
    }
}

impl core::error::Error for Halt {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step that did any kind of work is not idle; otherwise the member would sleep while work
    /// remains.
    #[test]
    fn every_kind_of_replica_progress_counts_as_work() {
        let done = [
            Progress { events: 1, ..Progress::default() },
            Progress { granted: 1, ..Progress::default() },
            Progress { campaigns: 1, ..Progress::default() },
            Progress { proposed: 1, ..Progress::default() },
            Progress { processed: 1, ..Progress::default() },
            Progress { passed_on: 1, ..Progress::default() },
            Progress { lists: 1, ..Progress::default() },
            Progress { copied_bytes: 1, ..Progress::default() },
            // Equal counts, as in a group of one.
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
