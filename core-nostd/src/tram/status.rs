//! What a host shows of a replica, and by what it finds out that its group is lost.
//!
//! Requirements: TRM-3, TRM-5.

use super::link::{Memory, Role};
use super::log::Log;
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
        let control = Log::new(memory.log(), self.shape).control()?;
        Ok(LogCounts { tail: control.tail, decided: control.decided, delivered: self.delivered })
    }

    /// Whether a replica of the group counts in quorums, as it shows. A peer that is not here does
    /// not.
    ///
    /// # Errors
    /// The memory does not fit.
    pub fn is_voting_here<M: Memory>(&self, rank: Rank, memory: &M) -> Result<bool, Halt> {
        if rank == self.id.rank {
            return Ok(self.is_voter);
        }
        let Some(link) = self.links.find(Role::Peer(rank)) else { return Ok(false) };
        Ok(self.is_ready(link) && self.is_voting(link, memory)?)
    }
}
