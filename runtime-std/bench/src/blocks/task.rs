//! The task of a process of a block experiment, and its measurements.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_core::rdmc::transfer::Window;

use crate::error::BenchError;
use tramontane_local::options::AlgorithmName;
use tramontane_runtime::blocks::{Ended, GroupOptions};

/// Time limit for one message, and for closing a group.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// The reason that the hybrid algorithm is not offered.
pub(super) const RACKS: &str = "--algorithm hybrid needs racks, which a single machine does not have; choose another algorithm";

/// The task of a member of block groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockTask {
    /// Size of a message in bytes.
    pub(super) message_bytes: usize,
    /// Number of measured messages per root.
    pub(super) messages: u64,
    /// The algorithm that schedules blocks.
    pub(super) algorithm: AlgorithmName,
    /// Size of a block in bytes.
    pub(super) block_bytes: usize,
    /// Maximum number of receives in flight at a member.
    pub(super) receives: u16,
    /// Maximum number of sends in flight at a member.
    pub(super) sends: u16,
    /// Number of members, from the first, that each send in their own group.
    pub(super) senders: u16,
    /// Number of messages before the measured ones.
    pub(super) warm_ups: u64,
    /// Maximum number of a root's messages in flight.
    pub(super) ahead: usize,
}

impl BlockTask {
    pub(crate) fn options(&self) -> Result<GroupOptions, BenchError> {
        let algorithm = self.algorithm.of_no_racks();
        let algorithm = algorithm.ok_or_else(|| BenchError::Arguments(RACKS.into()))?;
        Ok(GroupOptions {
            algorithm,
            block_bytes: self.block_bytes,
            message_max: self.message_bytes,
            window: Window { receives: self.receives, sends: self.sends },
        })
    }
}

/// The measurements of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BlockOutcome {
    /// At a root: time from the send of each measured message until all receivers had it.
    pub(crate) latency_ns: Vec<u32>,
    /// At a root: the span of all measured messages.
    pub(super) span: Option<Span>,
}

/// An interval on the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Span {
    /// The time at which the first message was sent.
    pub(super) begin_ns: u64,
    /// The time at which all receivers had the last message.
    pub(super) end_ns: u64,
}

impl Span {
    pub(super) fn length_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns).max(1)
    }
}

/// Returns the error for a group that ended before it carried a message.
pub(super) fn ended_early(ended: Option<&Ended>) -> BenchError {
    let why = ended.map_or_else(
        || format!("a message had not reached all receivers after {LIMIT:?}"),
        Ended::to_string,
    );
    BenchError::Setup(why)
}
