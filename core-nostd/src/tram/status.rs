//! The status of a replica for its host, which uses it to detect that the group is lost.
//!
//! Requirements: TRM-3, TRM-5.

use super::link::{LinkRole, Memory};
use super::log::{Control, Log};
use super::progress::Halt;
use super::replica::Replica;
use crate::ids::Rank;

/// The progress of a replica's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogCounts {
    /// Number of entries.
    pub tail: u64,
    /// Number of decided entries.
    pub decided: u64,
    /// Number of entries that have been delivered, or skipped because they are for other groups.
    pub delivered: u64,
}

impl Replica<'_> {
    /// Returns the progress of the local log.
    ///
    /// # Errors
    /// Fails if the memory does not fit.
    pub fn log_counts<M: Memory>(&self, memory: &M) -> Result<LogCounts, Halt> {
        let Control { tail, decided, .. } = Log::new(memory.log(), self.common.shape).control()?;
        Ok(LogCounts { tail, decided, delivered: self.delivered() })
    }

    /// Returns whether a replica of the group publishes that it counts in quorums. False for a peer
    /// that is not connected.
    ///
    /// # Errors
    /// Fails if the memory does not fit.
    pub fn is_voting_here<M: Memory>(&self, rank: Rank, memory: &M) -> Result<bool, Halt> {
        let common = &self.common;
        if rank == common.id.rank {
            return Ok(common.is_voter);
        }
        let Some(link) = common.links.find(LinkRole::Peer(rank)) else { return Ok(false) };
        Ok(common.is_ready(link) && common.is_voting(link, memory)?)
    }
}
