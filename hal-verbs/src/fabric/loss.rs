//! The loss of a peer, with everything that is known about it.

use tramontane_core::fabric::LossCause;

use super::LossReason;
use crate::status::WorkStatus;

/// The reason why a peer counts as lost, with everything that the device reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The cause that the core receives.
    pub cause: LossCause,
    /// The status of the first request that failed; `None` if the loss was detected in another way.
    pub status: Option<WorkStatus>,
    /// The vendor's error code for that request.
    pub vendor_error: u32,
    /// The state of the queue pair at that moment.
    pub queue_pair: Option<&'static str>,
    /// The reason why the peer is unreachable, if it is known.
    pub reason: Option<LossReason>,
}

impl Loss {
    pub(super) const fn of(cause: LossCause) -> Self {
        Self { cause, status: None, vendor_error: 0, queue_pair: None, reason: None }
    }

    pub(super) const fn because(reason: LossReason) -> Self {
        Self { reason: Some(reason), ..Self::of(LossCause::Unreachable) }
    }

    /// Returns the remedy for an unreachable peer. If the reason is known, its own remedy is used.
    pub(crate) fn advice(&self) -> &'static str {
        match self.reason {
            Some(_) => "",
            None => "; choose addresses (GIDs) on the same network, and let UDP port 4791 pass",
        }
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.cause)?;
        if let Some(status) = self.status {
            write!(out, ": {status}")?;
        }
        if let Some(state) = self.queue_pair {
            write!(out, ", the queue pair in state '{state}', vendor error {}", self.vendor_error)?;
        }
        if let Some(reason) = self.reason {
            write!(out, "; {reason}")?;
        }
        Ok(())
    }
}
