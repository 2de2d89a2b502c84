//! A member's own log of a subgroup, for a program that reads it from some place on while the
//! member runs: what the application was handed before it asked for it, or forgot since.
//!
//! # Invariants
//! - Messages come once each, in the subgroup's order, and only such as the application is handed:
//!   a log may have some that are never delivered, as a view ends.
//! - The thread that drives the member is never waited for, and waits for a read of [`CHUNK_BYTES`]
//!   at most.

use std::time::Duration;

use tramontane_control::client_messages::ClientId;
use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};
use tramontane_log::ReadError;

use super::comparison::{SharedLog, SharedLogError, SharedLogs};
use super::delivered::Delivered;
use crate::group::clients::origin::Origin;
use crate::group::control::clients::RecordPlaces;
use crate::group::delivery::message::Message;

/// Bytes of records that are read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// What is durable and not handed over is looked at again after so long.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// Reads a member's log of one subgroup, from any place that the log has
/// ([`Running::log_reader`](crate::group::Running::log_reader)). Any thread may have one. It keeps
/// no log open: it ends with the member.
pub struct LogReader {
    subgroup: SubgroupId,
    logs: SharedLogs,
    /// Where the subgroup takes clients: a place counts messages alone, a log also what is said of
    /// clients.
    places: Option<Box<dyn RecordPlaces>>,
    next: u64,
}

/// What a log has next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPart {
    /// Messages, the first of which has that place.
    Messages(u64, Vec<LoggedMessage>),
    /// Messages that the log does not have any more, or never had, or that are damaged in it.
    Gap {
        /// The place of the first.
        from: u64,
        /// The first place that is not among them.
        to: u64,
    },
}

/// A message of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedMessage {
    subgroup: SubgroupId,
    view: ViewId,
    place: Place,
    sender: NodeId,
    client: Option<ClientId>,
    is_large: bool,
    payload: Vec<u8>,
}

/// Why nothing more can be read of a log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogReaderError {
    /// The member has ended, and its log is closed.
    #[error("the member has ended")]
    Ended,
    /// The log cannot be read.
    #[error("{0}")]
    Log(String),
}

impl LoggedMessage {
    /// The message as it was handed over. It counts as one of now, and not as replayed.
    #[must_use]
    pub fn message(&self) -> Message<'_> {
        let Self { subgroup, view, place, sender, client, is_large, ref payload } = *self;
        Message { subgroup, view, place, sender, payload, client, is_large, is_replayed: false }
    }
}

impl LogReader {
    pub(crate) const fn new(
        subgroup: SubgroupId,
        logs: SharedLogs,
        places: Option<Box<dyn RecordPlaces>>,
        next: u64,
    ) -> Self {
        Self { subgroup, logs, places, next }
    }

    /// The place that comes next: how many messages of the subgroup were handed over before it
    /// since the group began.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Reads on, and waits at most `timeout` until there is something: what was handed over is
    /// there once it is durable here. Nothing if there is nothing new.
    ///
    /// # Errors
    /// [`LogReaderError`]. After [`LogReaderError::Log`] the next call tries again.
    pub fn read_within(&mut self, timeout: Duration) -> Result<Option<LogPart>, LogReaderError> {
        let log = self.logs.get(self.subgroup).ok_or(LogReaderError::Ended)?;
        let first = self.first(&log);
        let Some(record) = self.record_of(self.next).filter(|_| self.next >= first) else {
            return Ok(Some(self.skip_to(first.max(self.next.saturating_add(1)))));
        };
        match log.wait(record.saturating_add(1), timeout) {
            Ok(()) => {}
            Err(SharedLogError::Slow) => return Ok(None),
            Err(error) => return Err(LogReaderError::Log(error.to_string())),
        }
        let end = log.end().min(self.logs.delivered(self.subgroup));
        if record >= end {
            std::thread::sleep(timeout.min(LOOK_PAUSE));
            return Ok(None);
        }
        match log.read(self.subgroup, record, end, CHUNK_BYTES) {
            Ok(records) => Ok(self.take(records)),
            // What is before it was read with the call before.
            Err(SharedLogError::Read(ReadError::Damaged { sequence, .. })) => {
                match log.read(self.subgroup, record, sequence.0, CHUNK_BYTES) {
                    Ok(records) if !records.is_empty() => Ok(self.take(records)),
                    _ => Ok(Some(self.skip_to(self.next.saturating_add(1)))),
                }
            }
            // It let go of it meanwhile.
            Err(SharedLogError::Read(ReadError::OutOfRange { .. })) => {
                let first = self.first(&log).max(self.next.saturating_add(1));
                Ok(Some(self.skip_to(first)))
            }
            Err(error) => Err(LogReaderError::Log(error.to_string())),
        }
    }

    /// The first place that the log has.
    fn first(&self, log: &SharedLog) -> u64 {
        let first = log.first();
        self.places.as_ref().map_or(first, |places| places.first(first))
    }

    fn record_of(&self, place: u64) -> Option<u64> {
        self.places.as_ref().map_or(Some(place), |places| places.record_of(place))
    }

    fn skip_to(&mut self, to: u64) -> LogPart {
        let from = std::mem::replace(&mut self.next, to);
        LogPart::Gap { from, to }
    }

    /// Takes records, the first of which has the next place, if it is a message.
    fn take(&mut self, records: Vec<Delivered>) -> Option<LogPart> {
        let has_clients = self.places.is_some();
        let messages: Vec<LoggedMessage> =
            records.into_iter().filter_map(|record| logged(record, has_clients)).collect();
        let count = u64::try_from(messages.len()).unwrap_or(u64::MAX);
        let first = self.next;
        self.next = first.saturating_add(count);
        (count > 0).then_some(LogPart::Messages(first, messages))
    }
}

/// A record as a message; nothing if it is word of a client.
fn logged(record: Delivered, has_clients: bool) -> Option<LoggedMessage> {
    let Delivered { subgroup, view, place, sender, is_large, mut payload } = record;
    let mut client = None;
    if has_clients {
        let (origin, bytes) = Origin::split(&payload)?;
        client = match origin {
            Origin::Member => None,
            Origin::Client { life, .. } => Some(life.id),
            Origin::Attach { .. } | Origin::LeaseEnds { .. } => return None,
        };
        payload.truncate(bytes.len());
    }
    Some(LoggedMessage {
        subgroup: SubgroupId(subgroup),
        view: ViewId(view),
        place: Place(place),
        sender: NodeId(sender),
        client,
        is_large,
        payload,
    })
}

impl std::fmt::Debug for LogReader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { subgroup, next, .. } = self;
        out.debug_struct("LogReader")
            .field("subgroup", subgroup)
            .field("next", next)
            .finish_non_exhaustive()
    }
}
