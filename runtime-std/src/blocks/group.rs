//! A group's handle, and how the group ended.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::end::{Ended, GroupEnd};
use super::request::Request;
use crate::block_transfer::buffer::Buffer;
use crate::member::Stopped;
use crate::poll::Drive;

/// Why a message is not sent. The buffer comes back with it.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct SendFailure {
    /// What is wrong.
    pub why: SendRefusal,
    /// What was to be sent.
    pub buffer: Buffer,
}

/// What is wrong with a send.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendRefusal {
    /// Only the first member of a group sends in it.
    #[error("only the first member of a group sends; create a group for each sender")]
    NotRoot,
    /// The message is larger than its buffer, or than the group takes.
    #[error("a message of {bytes} bytes does not fit: the limit is {limit}")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most there may be.
        limit: usize,
    },
    /// The group was closed, and may still be at it.
    #[error("the group was closed, and takes no more messages; create another to go on")]
    Closing,
    /// The group is over.
    #[error(transparent)]
    Ended(#[from] Ended),
}

/// Why a group is not closed yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseFailure {
    /// The root closes; the others find out.
    #[error("only the first member of a group closes it")]
    NotRoot,
    /// It takes longer. The group goes on closing.
    #[error("the group is not closed after {0:?}; wait longer")]
    TimedOut(Duration),
}

/// What was asked of a group by its handle. Held while a request goes to the polling thread, so
/// that none comes behind a close, and messages have the numbers of their order.
#[derive(Debug, Default)]
pub(super) struct Asked {
    sent: u64,
    is_closing: bool,
}

/// One member's handle on a group. Dropping it changes nothing: the group goes on until its root
/// closes it, or somebody fails.
pub struct Group {
    pub(super) number: u64,
    pub(super) is_root: bool,
    pub(super) message_max: usize,
    pub(super) requests: Sender<Request>,
    pub(super) driver: Arc<dyn Drive>,
    pub(super) end: Arc<GroupEnd>,
    pub(super) asked: Mutex<Asked>,
}

impl Group {
    /// The group's number.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Sends the first `bytes` bytes of a buffer; which message of the group it is. Does not wait:
    /// messages go one after the other, and each comes back in
    /// [`Recipient::completed`](super::recipient::Recipient::completed).
    ///
    /// # Errors
    /// [`SendFailure`]; where the group fails before a message was completed, its buffer is
    /// dropped.
    pub fn send(&self, buffer: Buffer, bytes: usize) -> Result<u64, SendFailure> {
        let limit = buffer.len().min(self.message_max);
        let mut asked = self.asked();
        let why = match self.end.get() {
            Some(ended) => Some(ended.into()),
            None if !self.is_root => Some(SendRefusal::NotRoot),
            None if asked.is_closing => Some(SendRefusal::Closing),
            None if bytes > limit => Some(SendRefusal::TooLarge { bytes, limit }),
            None => None,
        };
        if let Some(why) = why {
            return Err(SendFailure { why, buffer });
        }
        let request = Request::Send { number: self.number, buffer, bytes };
        match self.requests.send(request) {
            Ok(()) => {
                let message = asked.sent;
                asked.sent += 1;
                self.driver.ring();
                Ok(message)
            }
            Err(refused) => match refused.0 {
                Request::Send { buffer, .. } => {
                    Err(SendFailure { why: Ended::Stopped(Stopped::Closed).into(), buffer })
                }
                _ => unreachable!("what was not taken comes back"),
            },
        }
    }

    /// Closes the group once everything that was sent is through, and waits until it is over, at
    /// most `timeout`. From then on it takes no message, whether it is over in that time or not; to
    /// wait longer, ask again.
    ///
    /// # Errors
    /// [`CloseFailure`].
    pub fn close(&self, timeout: Duration) -> Result<Ended, CloseFailure> {
        if !self.is_root {
            return Err(CloseFailure::NotRoot);
        }
        {
            let mut asked = self.asked();
            asked.is_closing = true;
            // Who does not take it has ended, which is told below.
            let _ = self.requests.send(Request::Close { number: self.number });
        }
        self.driver.ring();
        self.wait(timeout).ok_or(CloseFailure::TimedOut(timeout))
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the group is over, at most `timeout`.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> Option<Ended> {
        self.end.wait(timeout)
    }

    /// How the group ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.end.get()
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { number, is_root, .. } = self;
        out.debug_struct("Group")
            .field("number", number)
            .field("is_root", is_root)
            .finish_non_exhaustive()
    }
}
