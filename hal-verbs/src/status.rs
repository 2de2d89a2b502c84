//! How a work request can end, and what that says of the peer.

use std::fmt;

use tramontane_core::fabric::LossCause;

/// `enum ibv_wc_status`, as far as a reliable connection knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStatus {
    /// It was done.
    Success,
    /// A range outside of registered memory, or of a wrong key, at this end.
    LocalError(u32),
    /// The queue pair had failed before: this request was never tried, or is not known to have
    /// arrived.
    Flushed,
    /// The peer understood the request and may not do it: writes are not permitted on the
    /// connection.
    RemoteInvalidRequest,
    /// The peer denied the range or the key.
    RemoteAccess,
    /// The peer could not do it, for reasons of its own.
    RemoteOperation,
    /// Nothing came back, however often it was sent.
    RetriesExceeded,
    /// The peer had no receive posted, however long that was waited for.
    ReceiverNotReady,
    /// Anything else, by its number.
    Other(u32),
}

impl WorkStatus {
    /// From the number in a completion.
    #[must_use]
    pub const fn from_raw(status: u32) -> Self {
        match status {
            0 => Self::Success,
            1..=4 | 6 | 8 => Self::LocalError(status),
            5 => Self::Flushed,
            9 => Self::RemoteInvalidRequest,
            10 => Self::RemoteAccess,
            11 => Self::RemoteOperation,
            12 => Self::RetriesExceeded,
            13 => Self::ReceiverNotReady,
            other => Self::Other(other),
        }
    }

    /// What it makes one think of the peer (HAL-5).
    ///
    /// A denial is told by either of two statuses: which one depends on whether the key or the
    /// connection forbids the write. A flush that is seen first means that the other end broke the
    /// connection, by a write that it may not do, or by its end; so does everything that is wrong
    /// at this end, since the connection is gone all the same.
    #[must_use]
    pub const fn cause(self) -> LossCause {
        match self {
            Self::RemoteInvalidRequest | Self::RemoteAccess => LossCause::Denied,
            _ => LossCause::Unreachable,
        }
    }
}

impl fmt::Display for WorkStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => out.write_str("done"),
            Self::LocalError(status) => write!(out, "an error at this end (status {status})"),
            Self::Flushed => out.write_str("flushed: the connection had failed before (status 5)"),
            Self::RemoteInvalidRequest => out.write_str("the peer does not permit it (status 9)"),
            Self::RemoteAccess => out.write_str("the peer denied the range or the key (status 10)"),
            Self::RemoteOperation => out.write_str("the peer failed at it (status 11)"),
            Self::RetriesExceeded => out.write_str("no answer after all retries (status 12)"),
            Self::ReceiverNotReady => out.write_str("the peer had no receive posted (status 13)"),
            Self::Other(status) => write!(out, "status {status}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_are_told_apart_from_silence() {
        let cause = |status| WorkStatus::from_raw(status).cause();
        assert_eq!(cause(9), LossCause::Denied);
        assert_eq!(cause(10), LossCause::Denied);
        for silent in [5, 12, 13, 4, 21] {
            assert_eq!(cause(silent), LossCause::Unreachable, "{silent}");
        }
    }

    #[test]
    fn every_status_says_something() {
        for status in 0..30 {
            assert!(!WorkStatus::from_raw(status).to_string().is_empty());
        }
    }
}
