//! How long a call on a connection may wait, what ends it early, and how it may end.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a call waits before it looks whether it should stop.
pub(super) const SLICE: Duration = Duration::from_millis(50);

/// The stop flag of a call that nothing stops early.
pub(super) static NEVER: AtomicBool = AtomicBool::new(false);

/// How a message did not come or go.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChannelError {
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// The time is up.
    #[error("too slow")]
    TimeUp,
    /// The other end closed.
    #[error("closed by the other end")]
    Closed,
    /// It cannot be deciphered, or is too long.
    #[error("not understood")]
    Malformed,
    /// The handshake shows that the other end has another key.
    #[error("another key")]
    #[cfg_attr(not(feature = "keys"), expect(dead_code))]
    WrongKey,
    /// The system says so.
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

/// How long a call may wait, and what ends it early.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline<'p> {
    pub(super) until: Instant,
    pub(super) stop: &'p AtomicBool,
}

impl<'p> Deadline<'p> {
    /// So long from now. A limit beyond the clock's end is one of a year.
    pub(super) fn new(time_limit: Duration, stop: &'p AtomicBool) -> Self {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        Self { until: Instant::now() + time_limit.min(YEAR), stop }
    }

    /// At most so long from now.
    pub(super) fn within(self, most: Duration) -> Self {
        Self { until: self.until.min(Instant::now() + most), ..self }
    }

    /// The time of one wait.
    pub(super) fn slice(&self) -> Result<Duration, ChannelError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ChannelError::Stopped);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ChannelError::TimeUp) } else { Ok(left.min(SLICE)) }
    }
}
