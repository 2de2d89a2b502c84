//! A schedule as a list of sends.

use serde::Serialize;
use tramontane_core::ids::{Rank, Step};
use tramontane_core::rdmc::Schedule;

use tramontane_local::options::AlgorithmName;

/// A block that one member sends to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Send {
    pub(super) step: u64,
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) block: u32,
}

/// A schedule, and the member whose sends and receives are requested, or `None` for the whole
/// schedule.
pub(super) struct PlannedSchedule {
    pub(super) name: AlgorithmName,
    pub(super) schedule: Schedule,
    pub(super) rank: Option<u16>,
}

impl PlannedSchedule {
    pub(super) fn members(&self) -> u16 {
        self.schedule.shape().members.get()
    }

    /// Returns the sends in a step: all of them, or those of the requested member.
    pub(super) fn sends(&self, step: u64) -> impl Iterator<Item = Send> + '_ {
        let senders = self.rank.map_or(0..self.members(), |rank| rank..rank + 1);
        let sent = senders.flat_map(move |from| {
            let hops = self.schedule.sent(Rank(from), Step(step)).into_iter().flatten();
            hops.map(move |hop| Send { step, from, to: hop.peer.0, block: hop.block.0 })
        });
        let received = self.rank.and_then(|to| {
            let hop = self.schedule.received(Rank(to), Step(step))?;
            Some(Send { step, from: hop.peer.0, to, block: hop.block.0 })
        });
        sent.chain(received)
    }
}
