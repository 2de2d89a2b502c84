//! The reasons why a message is not sent.

use std::time::Duration;

use super::stop::Stopped;

/// The reason why a message was not sent. A refused message has no effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The message is larger than a slot.
    #[error(
        "a message of {length} bytes exceeds the limit of {limit}; send a shorter message, or \
         raise message_max"
    )]
    TooLarge {
        /// The length of the message in bytes.
        length: usize,
        /// The capacity of a slot in bytes.
        limit: u32,
    },
    /// No slot became free within the timeout.
    #[error(
        "no slot became free within {0:?}, because a member is slow or stalled; allow more time"
    )]
    TimedOut(Duration),
    /// The member has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
