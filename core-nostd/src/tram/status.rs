//! What a host shows of a replica, and by what it finds out that its group is lost.
//!
//! Requirements: TRM-3, TRM-5.

use super::link::{LinkRole, Memory};
use super::log::{Control, Log};
use super::progress::Halt;
use super::replica::Replica;
use crate::ids::Rank;

/// How far a replica's log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogCounts {
    /// Entries that it has.
    pub tail: u64,
    /// How many of them are decided.
    pub decided: u64,
    /// How many of them were delivered, or passed over because they are for other groups.
    pub delivered: u64,
}

impl Replica<'_> {
    /// How far the own log is.
    ///
    /// # Errors
    /// The memory does not fit.
    pub fn log_counts<M: Memory>(&self, memory: &M) -> Result<LogCounts, Halt> {
        let Control { tail, decided, .. } = Log::new(memory.log(), self.common.shape).control()?;
        Ok(LogCounts { tail, decided, delivered: self.delivered() })
    }

    /// Whether a replica of the group counts in quorums, as it shows. A peer that is not here does
    /// not.
    ///
    /// # Errors
    /// The memory does not fit.
    pub fn is_voting_here<M: Memory>(&self, rank: Rank, memory: &M) -> Result<bool, Halt> {
        let common = &self.common;
        if rank == common.id.rank {
            return Ok(common.is_voter);
        }
        let Some(link) = common.links.find(LinkRole::Peer(rank)) else { return Ok(false) };
        Ok(common.is_ready(link) && common.is_voting(link, memory)?)
    }
}
