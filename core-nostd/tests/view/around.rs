//! The environment of a member's `ViewChange` in these tests: its state in each subgroup, the peers
//! that it has cut off, the memory of the next view, and the promises on its disk.

use std::collections::BTreeSet;

use tramontane_core::ids::{Frontier, NodeId, Rank, SubgroupId};
use tramontane_core::multicast::Misbehaved;
use tramontane_core::view::{Ballot, Cause, Host, NextView};

/// A member's state in one subgroup: counts, and the contents of its rounds.
#[derive(Clone, Debug, Default, Hash)]
pub struct SubgroupContents {
    /// The message of each of its rounds, or `None`.
    pub rounds: Vec<Option<u64>>,
    /// Rounds of each sender and received frontier of each member, as last read from a row that may
    /// be read.
    pub sent_seen: Vec<u64>,
    pub received_seen: Vec<u64>,
    pub received: u64,
    pub delivered: u64,
}

/// The node around a `ViewChange`, excluding its row.
#[derive(Clone, Debug, Default, Hash)]
pub struct Around {
    pub parts: Vec<SubgroupContents>,
    pub wedged: bool,
    pub cut: BTreeSet<u16>,
    pub misbehaved: BTreeSet<u16>,
    /// The peers that the member has cut off, in order, each with the cause.
    pub causes: Vec<(Rank, Cause)>,
    /// The next view whose memory was requested, and the calls so far.
    pub prepared: (Vec<NodeId>, u8),
    pub deliver_calls: u8,
    pub prepare_needs: u8,
    pub deliver_needs: u8,
    pub keeps_promises: bool,
    /// The promise on disk, with the logs up to its trims; then the promise requested after it,
    /// which may be in flight to the disk.
    pub kept: Option<Kept>,
    pub keeping: Option<Kept>,
}

/// A member's promise: the ballot of the list, the next view's members, and the trims.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kept {
    pub ballot: Ballot,
    pub members: Vec<NodeId>,
    pub trims: Vec<Option<u64>>,
}

impl Host for Around {
    fn received(&self, subgroup: SubgroupId) -> Frontier {
        Frontier(self.parts[subgroup.index()].received)
    }

    fn delivered(&self, subgroup: SubgroupId) -> Frontier {
        Frontier(self.parts[subgroup.index()].delivered)
    }

    fn wedge(&mut self) {
        self.wedged = true;
    }

    fn prepare(&mut self, next: NextView<'_>) -> bool {
        if self.prepared.0 != next.members {
            self.prepared = (next.members.to_vec(), 0);
        }
        self.prepared.1 = self.prepare_needs.min(self.prepared.1 + 1);
        self.prepared.1 >= self.prepare_needs
    }

    fn promise(
        &mut self,
        next: NextView<'_>,
        ballot: Ballot,
        trim: impl Fn(SubgroupId) -> Option<Frontier>,
    ) -> Result<bool, Misbehaved> {
        if !self.keeps_promises {
            return Ok(true);
        }
        let subgroups = (0..self.parts.len() as u16).map(SubgroupId);
        let trims = subgroups.map(|id| trim(id).map(|trim| trim.0)).collect();
        let asked = Some(Kept { ballot, members: next.members.to_vec(), trims });
        if self.keeping == asked {
            self.kept = self.keeping.take();
        } else if self.kept != asked {
            self.keeping = asked.clone();
        }
        Ok(self.kept == asked)
    }

    fn deliver_to(&mut self, subgroup: SubgroupId, trim: Frontier) -> Result<bool, Misbehaved> {
        self.deliver_calls = self.deliver_needs.min(self.deliver_calls + 1);
        let part = &mut self.parts[subgroup.index()];
        if self.deliver_calls >= self.deliver_needs {
            part.delivered = part.delivered.max(trim.0);
        }
        Ok(part.delivered >= trim.0)
    }

    fn cut(&mut self, peer: Rank, cause: Cause) {
        self.cut.insert(peer.0);
        if cause == Cause::Misbehaved {
            self.misbehaved.insert(peer.0);
        }
        self.causes.push((peer, cause));
    }
}

impl Around {
    /// Returns whether the memory of the most recently requested view is ready.
    pub fn is_prepared(&self) -> bool {
        self.prepared.1 >= self.prepare_needs
    }
}
