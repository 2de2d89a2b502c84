//! What a process of a block experiment is to do, and what it saw.

use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_core::rdmc::transfer::Window;

use super::link::Link;
use crate::error::BenchError;
use tramontane_local::options::AlgorithmName;
use tramontane_runtime::blocks::{Ended, GroupOptions};

/// How long one message may take, and the end of a group.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// Why there is no hybrid.
pub(super) const RACKS: &str =
    "--algorithm hybrid needs racks, which one machine has not: take another";

/// What a member of block groups does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockTask {
    /// Bytes of a message.
    pub(super) message_bytes: usize,
    /// Messages of each root that are measured.
    pub(super) messages: u64,
    /// How blocks go.
    pub(super) algorithm: AlgorithmName,
    /// Bytes of a block.
    pub(super) block_bytes: usize,
    /// Receives under way at a member.
    pub(super) receives: u16,
    /// Sends under way at a member.
    pub(super) sends: u16,
    /// The number of members, from the first, that each send in a group of their own.
    pub(super) senders: u16,
    /// Messages before those that are measured.
    pub(super) warm_ups: u64,
    /// Messages of a root that may be under way.
    pub(super) ahead: usize,
    /// Bytes a second that each link takes each way, if it is limited.
    pub(super) link_bytes_per_s: Option<NonZeroU64>,
    /// A link that takes half of that.
    pub(super) slow_link: Option<Link>,
    /// The member that is delayed, if there is one.
    pub(super) pause: Option<Pause>,
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

    /// How fast a member may send to each node whose link is limited.
    pub(super) fn rates(&self, own: u16, nodes: usize) -> Vec<(u32, NonZeroU64)> {
        let Some(rate) = self.link_bytes_per_s else { return Vec::new() };
        let slow = self.slow_link.and_then(|link| link.peer_of(own)).map(u32::from);
        let half = NonZeroU64::new(rate.get() / 2).unwrap_or(rate);
        let rate_to = |peer| (peer, if slow == Some(peer) { half } else { rate });
        (0..).take(nodes).filter(|peer| *peer != u32::from(own)).map(rate_to).collect()
    }
}

/// Which member pauses, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pause {
    /// By rank.
    pub(super) member: u16,
    /// How long it does nothing.
    pub(super) lasting_ns: u64,
}

/// What one process saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BlockOutcome {
    /// From each measured message's send to the moment at which it was everywhere; at a root.
    pub(crate) latency_ns: Vec<u32>,
    /// Of all measured messages; at a root.
    pub(super) span: Option<Span>,
    /// How long each pause of a delayed member was.
    pub(super) paused_ns: Vec<u32>,
}

/// A time by the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Span {
    /// When the first message was sent.
    pub(super) begin_ns: u64,
    /// When the last was everywhere.
    pub(super) end_ns: u64,
}

impl Span {
    pub(super) fn length_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns).max(1)
    }
}

/// Why a group did not carry a message.
pub(super) fn ended_early(ended: Option<&Ended>) -> BenchError {
    let why = ended
        .map_or_else(|| format!("a message was not everywhere after {LIMIT:?}"), Ended::to_string);
    BenchError::Setup(why)
}
