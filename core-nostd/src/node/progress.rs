//! What a step did.
//!
//! Requirement: COR-2.

use crate::fabric::LossCause;
use crate::ids::{Rank, SubgroupId};
use crate::multicast::Impossible;

/// What one step did. All zero and none: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress {
    /// Own slots published: messages, and reservations that were dropped.
    pub sent: u32,
    /// Peers' slots taken.
    pub received: u32,
    /// Own rounds used without a message.
    pub nulls: u64,
    /// Messages handed to the application.
    pub delivered: u64,
    /// Own slots that came free: a null that was owed may have waited for one (NUL-2).
    pub freed: u32,
    /// Lists that the fabric took: doorbells, where a list costs one.
    pub lists: u32,
    /// Writes in those lists.
    pub writes: u32,
    /// Lists that carried nothing but a heartbeat. They count as no work, and their writes are not
    /// in `writes`.
    pub heartbeats: u32,
    /// A reservation of this subgroup has been held for longer than the options allow (SMC-3).
    pub overdue: Option<SubgroupId>,
    /// A peer was lost in this step, and why. If several were lost, the first.
    pub lost: Option<(Rank, LossCause)>,
    /// A peer that published what no correct member publishes, and what that was. If there were
    /// several, the first.
    pub refused: Option<(Rank, Impossible)>,
    /// Something of a peer fails its check, and counts as not there yet: step on, until it is
    /// mended or its owner is lost.
    pub unreadable: bool,
}

impl Progress {
    /// Whether nothing was sent, received, delivered, used up, freed or posted: another step would
    /// find nothing either until something comes.
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

/// Why a step ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum StepError {
    /// State and memory do not belong together: they changed after the node was opened.
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

    /// A node that has done one thing alone has not been idle: else it would fall asleep with work
    /// left.
    #[test]
    fn each_thing_that_is_done_counts_as_work() {
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
