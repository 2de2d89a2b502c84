//! The path of a participant's messages into a topic or discovery: a member sends through its slots
//! in the group, an external participant as a client's lines.

use std::sync::Arc;
use std::time::Duration;

use tramontane::{NotReached, Ordinal, ReserveError, SendError, Sender, Slot};
use tramontane_client::{PublishError, Publisher, Receipt};
use zerocopy::IntoBytes as _;

use crate::error::DdsError;

/// The path into one subgroup.
#[derive(Clone, Debug)]
pub(crate) enum Voice {
    /// The sender of a member.
    Member(Sender),
    /// The publisher of an external participant.
    Client(Arc<Publisher>),
}

/// The memory in which a message is built.
pub(crate) enum MessageMemory<'v> {
    /// A slot of the group.
    Slot(Slot<'v>),
    /// Memory of this process, from which the message is sent to a member.
    Line(VoiceLine<'v>),
}

/// A message being built in this process's memory. It is aligned to 8 bytes, like a slot.
pub(crate) struct VoiceLine<'v> {
    publisher: &'v Arc<Publisher>,
    words: &'v mut Vec<u64>,
    length: usize,
    wait: Duration,
}

/// A committed message.
#[derive(Clone, Debug)]
pub(crate) enum Committed {
    Slot(Ordinal),
    Line(Receipt),
}

impl Voice {
    /// Returns room for a message of at most `length` bytes. A member waits for room here, for at
    /// most `wait`; an external participant waits when it commits.
    #[inline]
    pub(crate) fn open<'v>(
        &'v mut self,
        line: &'v mut Vec<u64>,
        length: usize,
        wait: Duration,
    ) -> Result<MessageMemory<'v>, DdsError> {
        match self {
            Self::Member(sender) => {
                let slot = match wait {
                    Duration::ZERO => reserve_now(sender, length),
                    wait => sender.reserve(length, wait),
                };
                Ok(MessageMemory::Slot(slot?))
            }
            Self::Client(publisher) => {
                let limit = publisher.line_max();
                if length > limit {
                    return Err(DdsError::TooLarge { bytes: length, limit });
                }
                let words = length.div_ceil(size_of::<u64>());
                if line.len() < words {
                    line.resize(words, 0);
                }
                Ok(MessageMemory::Line(VoiceLine { publisher, words: line, length, wait }))
            }
        }
    }

    /// Sends a message, waiting for at most `wait`.
    pub(crate) fn say(&mut self, message: &[u8], wait: Duration) -> Result<(), DdsError> {
        match self {
            Self::Member(sender) => drop(sender.send(message, wait)?),
            Self::Client(publisher) => drop(publish(publisher, message, wait)?),
        }
        Ok(())
    }

    /// Waits until a message has been delivered or, with a log, until a majority has it on disk.
    pub(crate) fn wait_for(&self, last: &Committed, timeout: Duration) -> Result<(), DdsError> {
        match (self, last) {
            (Self::Member(sender), Committed::Slot(last)) => {
                let reached = match sender.clone().logged() {
                    Ok(logged) => logged.receipt(*last).durable_majority().wait(timeout).map(drop),
                    Err(_) => sender.receipt(*last).delivered().wait(timeout).map(drop),
                };
                reached.map_err(|why| match why {
                    NotReached::Stopped(stopped) => DdsError::Ended(stopped),
                    _ => DdsError::Timeout(timeout),
                })
            }
            (_, Committed::Line(receipt)) => {
                receipt.wait(timeout).map_err(|error| not_published(error, timeout))
            }
            // A voice creates messages of one kind only, so this case does not occur.
            (Self::Client(_), Committed::Slot(_)) => Ok(()),
        }
    }
}

/// Reserves a slot if one is currently free.
#[inline]
fn reserve_now(sender: &mut Sender, length: usize) -> Result<Slot<'_>, SendError> {
    sender.try_reserve(length).map_err(|error| match error {
        ReserveError::TooLarge { length, limit } => SendError::TooLarge { length, limit },
        ReserveError::Full | ReserveError::Contended => SendError::TimedOut(Duration::ZERO),
    })
}

fn publish(publisher: &Publisher, message: &[u8], wait: Duration) -> Result<Receipt, DdsError> {
    publisher.publish_within(message, wait).map_err(|error| not_published(error, wait))
}

fn not_published(error: PublishError, wait: Duration) -> DdsError {
    match error {
        PublishError::Full | PublishError::TimeUp => DdsError::Timeout(wait),
        PublishError::TooLong { bytes, limit } => DdsError::TooLarge { bytes, limit },
        error => DdsError::NotPublished(error),
    }
}

impl MessageMemory<'_> {
    /// Returns the payload to fill in. It initially holds stale bytes.
    #[inline]
    pub(crate) fn payload(&mut self) -> &mut [u8] {
        match self {
            Self::Slot(slot) => slot.payload(),
            Self::Line(line) => {
                line.words.as_mut_slice().as_mut_bytes().get_mut(..line.length).unwrap_or_default()
            }
        }
    }

    /// Shortens the message.
    #[inline]
    pub(crate) fn truncate(&mut self, length: usize) {
        match self {
            Self::Slot(slot) => slot.truncate(length),
            Self::Line(line) => line.length = line.length.min(length),
        }
    }

    /// Commits the message. A slot can always be committed.
    #[inline]
    pub(crate) fn commit(self) -> Result<Committed, DdsError> {
        match self {
            Self::Slot(slot) => Ok(Committed::Slot(slot.commit())),
            Self::Line(VoiceLine { publisher, words, length, wait }) => {
                let message = words.as_slice().as_bytes().get(..length).unwrap_or_default();
                publish(publisher, message, wait).map(Committed::Line)
            }
        }
    }
}
