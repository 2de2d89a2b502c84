//! The time limit of a call on a connection, the call's early end, and its errors.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time that a call waits before it checks whether it should stop.
pub(super) const SLICE: Duration = Duration::from_millis(50);

/// The stop flag for calls that cannot be stopped early.
pub(super) static NEVER: AtomicBool = AtomicBool::new(false);

/// The reason why a message was not sent or received.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChannelError {
    /// The caller asked to stop.
    #[error("stopped by the caller")]
    Stopped,
    /// The time limit has passed.
    #[error("timed out")]
    TimeUp,
    /// The other end closed the connection.
    #[error("closed by the other end")]
    Closed,
    /// The message cannot be decrypted, or is too long.
    #[error("the message is malformed")]
    Malformed,
    /// The handshake shows that the other end has a different key.
    #[error("the other end uses a different key; configure the same key at both ends")]
    #[cfg_attr(not(feature = "keys"), expect(dead_code))]
    WrongKey,
    /// An error reported by the system.
    #[error("{0}")]
    Io(std::io::Error),
}

impl From<std::io::Error> for ChannelError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

impl From<rustix::io::Errno> for ChannelError {
    fn from(errno: rustix::io::Errno) -> Self {
        std::io::Error::from(errno).into()
    }
}

/// The time limit of a call, and the flag that ends it early.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline<'p> {
    pub(super) until: Instant,
    pub(super) stop: &'p AtomicBool,
}

impl<'p> Deadline<'p> {
    /// Returns a deadline `time_limit` from now. A limit beyond the clock's range is replaced by
    /// one year.
    pub(super) fn new(time_limit: Duration, stop: &'p AtomicBool) -> Self {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        Self { until: Instant::now() + time_limit.min(YEAR), stop }
    }

    /// Limits the deadline to `most` from now.
    pub(super) fn within(self, most: Duration) -> Self {
        Self { until: self.until.min(Instant::now() + most), ..self }
    }

    /// Returns the duration of one wait.
    pub(super) fn slice(&self) -> Result<Duration, ChannelError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ChannelError::Stopped);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ChannelError::TimeUp) } else { Ok(left.min(SLICE)) }
    }
}
