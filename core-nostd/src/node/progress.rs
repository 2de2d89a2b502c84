//! The report of a step.
//!
//! Requirement: COR-2.

use crate::fabric::LossCause;
use crate::ids::{Rank, SubgroupId};
use crate::multicast::Impossible;

/// The results of one step. If every field is zero, false or `None`, nothing was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress {
    /// Number of local slots published: messages and dropped reservations.
    pub sent: u32,
    /// Number of slots received from peers.
    pub received: u32,
    /// Number of local rounds used without a message.
    pub nulls: u64,
    /// Number of messages handed to the application.
    pub delivered: u64,
    /// Number of local slots that became free: an owed null may have waited for one (NUL-2).
    pub freed: u32,
    /// Number of lists that the fabric accepted. If each list costs one doorbell, this is also the
    /// number of doorbells.
    pub lists: u32,
    /// Number of writes in those lists.
    pub writes: u32,
    /// Number of lists with only a heartbeat. They do not count as work, and their writes are not
    /// included in `writes`.
    pub heartbeats: u32,
    /// Subgroup with a reservation that has been held for longer than the options allow (SMC-3).
    pub overdue: Option<SubgroupId>,
    /// First peer that was lost in this step, and the cause.
    pub lost: Option<(Rank, LossCause)>,
    /// First peer in this step that published something that no correct member publishes, and what
    /// it was.
    pub refused: Option<(Rank, Impossible)>,
    /// Whether a peer's data fails its check, so that the data counts as not yet written. Keep
    /// stepping until the data is repaired or its owner is lost.
    pub unreadable: bool,
}

impl Progress {
    /// Returns whether nothing was sent, received, delivered, used up, freed or posted. Another
    /// step would also find nothing until something arrives.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.sent == 0
            && self.received == 0
            && self.nulls == 0
            && self.delivered == 0
            && self.freed == 0
            && self.writes == 0
            && self.lost.is_none()
            && !self.unreadable
    }
}

/// Reason why a step ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum StepError {
    /// The node's state and memory do not belong together: they changed after the node was opened.
    OutOfRow = 1,
}

impl core::fmt::Display for StepError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::OutOfRow => {
                out.write_str("the node's state and its memory do not belong together")
            }
        }
    }
}

impl core::error::Error for StepError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step that did any single kind of work is not idle; otherwise the node would sleep while
    /// work remains.
    #[test]
    fn every_kind_of_node_progress_counts_as_work() {
        let done = [
            Progress { sent: 1, ..Progress::default() },
            Progress { received: 1, ..Progress::default() },
            Progress { nulls: 1, ..Progress::default() },
            Progress { delivered: 1, ..Progress::default() },
            Progress { freed: 1, ..Progress::default() },
            Progress { writes: 1, ..Progress::default() },
            Progress { lost: Some((Rank(1), LossCause::Exited)), ..Progress::default() },
            Progress { unreadable: true, ..Progress::default() },
        ];
        for one in done {
            assert!(!one.is_idle(), "{one:?}");
        }
        assert!(Progress { lists: 1, heartbeats: 1, ..Progress::default() }.is_idle());
        assert!(Progress { overdue: Some(SubgroupId(0)), ..Progress::default() }.is_idle());
    }
}
