//! Reads a member's own log of a subgroup from any position while the member runs, for messages
//! that the application received earlier, or has forgotten since.
//!
//! # Invariants
//! - Each message comes once, in the subgroup's order, and only if the application receives it:
//!   when a view ends, a log may contain messages that are never delivered.
//! - The reader makes the driving thread wait only for one read of at most [`CHUNK_BYTES`] at a
//!   time.

use std::time::Duration;

use tramontane_control::client_messages::ClientId;
use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};
use tramontane_log::ReadError;

use super::comparison::{SharedLog, SharedLogError, SharedLogs};
use super::delivered::Delivered;
use crate::group::clients::origin::Origin;
use crate::group::control::clients::RecordPlaces;
use crate::group::delivery::message::Message;

/// The number of record bytes read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// The interval between checks for messages that are durable but not yet delivered.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// Reads a member's log of one subgroup from any position that the log has
/// ([`Running::log_reader`](crate::group::Running::log_reader)). A reader may be owned by any
/// thread. It keeps no log open, and ends with the member.
pub struct LogReader {
    subgroup: SubgroupId,
    logs: SharedLogs,
    /// For subgroups that accept clients. Sequence positions count messages only, but a log also
    /// contains client control messages.
    places: Option<Box<dyn RecordPlaces>>,
    next: u64,
}

/// The next part of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPart {
    /// Messages, and the sequence position of the first one.
    Messages(u64, Vec<LoggedMessage>),
    /// Messages that are damaged, or that the log no longer has or never had.
    Gap {
        /// The position of the first missing message.
        from: u64,
        /// The position after the last missing message.
        to: u64,
    },
}

/// A message from a log.
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

/// The reason why the log cannot be read further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogReaderError {
    /// The member has ended, and its log has been closed.
    #[error("the member has ended")]
    Ended,
    /// The log cannot be read.
    #[error("{0}")]
    Log(String),
}

impl LoggedMessage {
    /// Returns the message as it was delivered. It is not marked as replayed.
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

    /// Returns the next position, that is, the number of messages delivered in the subgroup before
    /// it since the group began.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the next part of the log, waiting up to `timeout` for new messages. A delivered
    /// message becomes available once it is durable at this member. Returns `None` if there is
    /// nothing new.
    ///
    /// # Errors
    /// Returns [`LogReaderError`]. After [`LogReaderError::Log`], the next call retries.
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
            // The previous call returned the records before the damaged one.
            Err(SharedLogError::Read(ReadError::Damaged { sequence, .. })) => {
                match log.read(self.subgroup, record, sequence.0, CHUNK_BYTES) {
                    Ok(records) if !records.is_empty() => Ok(self.take(records)),
                    _ => Ok(Some(self.skip_to(self.next.saturating_add(1)))),
                }
            }
            // The log has discarded this record in the meantime.
            Err(SharedLogError::Read(ReadError::OutOfRange { .. })) => {
                let first = self.first(&log).max(self.next.saturating_add(1));
                Ok(Some(self.skip_to(first)))
            }
            Err(error) => Err(LogReaderError::Log(error.to_string())),
        }
    }

    /// Returns the first position in the log.
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

    /// Takes records. If the first record is a message, it is at the next position.
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

/// Converts a record to a message. Returns `None` for a client control message.
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
