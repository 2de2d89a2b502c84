//! How a rolled-back disk is noticed: a replica that continues from a disk has at least the state
//! that it showed to its peers before.
//!
//! The host keeps the state that each peer has shown until its process ended
//! ([`Replica::shown_by`]), and asks the peer's next process for its state when it started
//! ([`Replica::least_saved`]). If the second does not [cover](LeastSaved::covers) the first, the
//! disk is an older copy: the replica would count entries and promises that it no longer has. A
//! peer that has lost its disk is not compared, because it returns as one that has lost its memory.
//!
//! # Why a sound disk covers everything shown
//! - A replica grants its log once the promise is on the disk, and as a leader stamps the logs of
//!   others after its own promise is there.
//! - Reports are of entries on the disk. A log on the disk has a later stamp than before, or the
//!   same stamp and a tail that is not lower. The term of a report lands after its count, so a
//!   later count may be read with an earlier term, but that is less than the later report.
//! - Delivered entries are on the disk, or in a snapshot. A host that uses this has a restored
//!   snapshot on its disk before the next step.
//!
//! Requirement: TRM-5.

use super::link::{LinkId, LinkRole, Memory, rank_of};
use super::log::Log;
use super::progress::Halt;
use super::replica::Replica;
use super::shape::peer_row;
use super::timestamp::Timestamp;

/// A lower bound of what a durable replica has saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LeastSaved {
    promised: Timestamp,
    stamp: Timestamp,
    tail: u64,
    delivered: u64,
}

impl LeastSaved {
    /// Number of cells of a bound.
    pub const CELLS: usize = 4;

    /// Returns the bound as cells, for a message between hosts.
    #[must_use]
    pub const fn cells(&self) -> [u64; Self::CELLS] {
        [self.promised.cell(), self.stamp.cell(), self.tail, self.delivered]
    }

    /// Returns the bound with these cells.
    #[must_use]
    pub const fn from_cells(cells: [u64; Self::CELLS]) -> Self {
        let [promised, stamp, tail, delivered] = cells;
        let (promised, stamp) = (Timestamp::from_cell(promised), Timestamp::from_cell(stamp));
        Self { promised, stamp, tail, delivered }
    }

    /// Returns whether a disk of which `self` is known also has everything in `shown`.
    #[must_use]
    pub fn covers(&self, shown: &Self) -> bool {
        self.promised >= shown.promised
            && self.log() >= shown.log()
            && self.delivered >= shown.delivered
    }

    /// Returns the bound that covers both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let later = if self.log() >= other.log() { self } else { other };
        Self {
            promised: self.promised.max(other.promised),
            delivered: self.delivered.max(other.delivered),
            ..*later
        }
    }

    const fn log(&self) -> (Timestamp, u64) {
        (self.stamp, self.tail)
    }
}

impl Replica<'_> {
    /// Returns what this replica has at least saved.
    #[must_use]
    pub fn least_saved(&self) -> LeastSaved {
        let record = self.common.disk.saved;
        LeastSaved {
            promised: record.promised,
            stamp: record.stamp,
            tail: record.tail,
            delivered: record.tail.max(self.common.delivered),
        }
    }

    /// Returns what the durable replica at the other end of a link, of the same group, has at least
    /// saved, as its row shows here. A replica of another group, or a client, shows nothing.
    ///
    /// # Errors
    /// Fails if the memory does not fit.
    pub fn shown_by<M: Memory>(&self, link: LinkId, memory: &M) -> Result<LeastSaved, Halt> {
        let is_peer = matches!(self.common.links.role(link), Some(LinkRole::Peer(_)));
        let Some((_, row)) = memory.link(link).filter(|_| is_peer) else {
            return Ok(LeastSaved::default());
        };
        let stamp = row.cell(peer_row::REPORTS_FOR)?.load();
        let tail = row.cell(peer_row::SEEN)?.load();
        let granted = row.cell(peer_row::GRANTED)?.load();
        let led = Log::new(memory.log(), self.common.shape).control()?.stamp;
        let led = if led.rank() == Some(rank_of(link)) { led.cell() } else { 0 };
        let promised = granted.max(led);
        let delivered = row.cell(peer_row::DELIVERED)?.load();
        Ok(LeastSaved::from_cells([promised, stamp, tail, delivered]))
    }
}
