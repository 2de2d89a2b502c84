//! The statuses with which work requests complete.
//!
//! No status says that a peer has cut this member off. The kernel destroys the objects of a killed
//! process one by one, beginning with the newest. Its memory may have been released while its queue
//! pairs still answer, and they answer as they would answer a forbidden write. So a refused request
//! is a reason to suspect the peer, just like an unanswered one (HAL-5). Only the side channel
//! reports that a peer has cut this member off.

use std::fmt;

/// The statuses of `enum ibv_wc_status` that a reliable connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStatus {
    /// The request succeeded.
    Success,
    /// At this end, a range is outside registered memory or has a wrong key.
    LocalError(u32),
    /// The queue pair had already failed: this request was never tried, or is not known to have
    /// arrived.
    Flushed,
    /// The peer's connection does not permit such a request. A terminating process also answers
    /// like this.
    RemoteInvalidRequest,
    /// The peer's memory does not permit the request: a wrong range or key, or memory that no
    /// longer exists, such as that of a terminating process.
    RemoteAccess,
    /// The peer could not execute the request, for reasons of its own.
    RemoteOperation,
    /// No answer arrived after all retries.
    RetriesExceeded,
    /// The peer had no receive posted during all retries.
    ReceiverNotReady,
    /// Any other status, by its number.
    Other(u32),
}

impl WorkStatus {
    /// Converts the status number of a completion.
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

    /// Returns the status as one word, for counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::LocalError(_) => "local-error",
            Self::Flushed => "flushed",
            Self::RemoteInvalidRequest => "remote-invalid-request",
            Self::RemoteAccess => "remote-access",
            Self::RemoteOperation => "remote-operation",
            Self::RetriesExceeded => "retries-exceeded",
            Self::ReceiverNotReady => "receiver-not-ready",
            Self::Other(_) => "other",
        }
    }
}

impl fmt::Display for WorkStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => out.write_str("done"),
            Self::LocalError(status) => write!(out, "a local error (status {status})"),
            Self::Flushed => out.write_str("flushed: the connection had failed before (status 5)"),
            Self::RemoteInvalidRequest => out.write_str(
                "the peer's connection refused the request, or the peer is terminating (status 9)",
            ),
            Self::RemoteAccess => out.write_str(
                "the peer's memory does not permit the request, or no longer exists (status 10)",
            ),
            Self::RemoteOperation => {
                out.write_str("the peer failed to carry out the request (status 11)")
            }
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
    fn every_status_has_a_text() {
        for status in 0..30 {
            assert!(!WorkStatus::from_raw(status).to_string().is_empty());
        }
    }
}
