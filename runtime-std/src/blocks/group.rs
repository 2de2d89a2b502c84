//! The handle of a group.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::end::{Ended, GroupEnd};
use super::request::Request;
use crate::block_transfer::buffer::Buffer;
use crate::member::Stopped;
use crate::poll::DriveOrRing;

/// The error of a failed send, which returns the buffer.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct SendFailure {
    /// The reason.
    pub why: SendRefusal,
    /// The buffer that was to be sent.
    pub buffer: Buffer,
}

/// The reason why a send is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendRefusal {
    /// Only the first member of a group sends.
    #[error("only the first member of a group can send; create a group for each sender")]
    NotRoot,
    /// The message is larger than its buffer, or than the group's limit.
    #[error("a message of {bytes} bytes exceeds the limit of {limit}; send a shorter message")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The largest allowed size in bytes.
        limit: usize,
    },
    /// The group is being closed, but may not have ended yet.
    #[error("the group is closed and accepts no more messages; create another group to continue")]
    Closing,
    /// The group has ended.
    #[error(transparent)]
    Ended(#[from] Ended),
}

/// The reason why a group is not closed yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseFailure {
    /// Only the root can close the group. The other members learn of it.
    #[error("only the first member of a group can close it")]
    NotRoot,
    /// The timeout has passed. The group is still closing.
    #[error("the group was not closed within {0:?}; allow more time")]
    TimedOut(Duration),
}

/// Requests made through a group's handle. Locked while a request is passed to the polling thread,
/// so that no send follows a close and message numbers match the order of the requests.
#[derive(Debug, Default)]
pub(super) struct Asked {
    sent: u64,
    is_closing: bool,
}

/// A member's handle to a group. Dropping the handle changes nothing: the group continues until its
/// root closes it or a member fails.
pub struct Group {
    pub(super) number: u64,
    pub(super) is_root: bool,
    pub(super) message_max: usize,
    pub(super) requests: Sender<Request>,
    pub(super) driver: Arc<dyn DriveOrRing>,
    pub(super) end: Arc<GroupEnd>,
    pub(super) asked: Mutex<Asked>,
}

impl Group {
    /// Returns the group's number.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Sends the first `bytes` bytes of a buffer, and returns the message's number in the group.
    /// Does not wait: messages are sent one at a time, and each buffer is returned in
    /// [`Recipient::completed`](super::recipient::Recipient::completed).
    ///
    /// # Errors
    /// Returns [`SendFailure`]. If the group fails before a message has been completed, the
    /// message's buffer is dropped.
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

    /// Closes the group once all sent messages have been completed, and waits until the group has
    /// ended, for at most `timeout`. The group accepts no further messages, even if the timeout
    /// passes first. To wait longer, call this again.
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
            // If the thread does not receive this request, it has ended, which is reported below.
            let _ = self.requests.send(Request::Close { number: self.number });
        }
        self.driver.ring();
        self.wait(timeout).ok_or(CloseFailure::TimedOut(timeout))
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the group has ended, for at most `timeout`.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> Option<Ended> {
        self.end.wait(timeout)
    }

    /// Returns how the group ended, or `None` if it has not ended.
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
