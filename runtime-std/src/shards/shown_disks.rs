//! The disks of the other replicas, as far as they have shown them here.
//!
//! A disk that is replaced with an older copy between two processes of a replica would take back
//! what the replica has promised and reported. A peer that knows more of this disk notices this:
//! see [`LeastSaved`]. It saves what it knows from time to time, so it also notices the copy if all
//! replicas have been started again. A copy that has everything which the others know is not
//! noticed.
//!
//! A replica that loses its disk begins another one, under a higher incarnation. Peers compare only
//! states of the same disk. They also reject a disk that was begun under a lower incarnation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tramontane_core::ids::NodeId;
use tramontane_core::tram::LeastSaved;

/// The state of a replica's disk when the replica started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DiskAtStart {
    /// The incarnation under which the replica began this disk.
    pub(super) since: u32,
    pub(super) saved: [u64; LeastSaved::CELLS],
}

/// The least that a replica's disk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShownDisk {
    /// The last process of the replica that was met.
    life: u64,
    since: u32,
    saved: LeastSaved,
}

/// The least that the disks of a replica's peers have.
#[derive(Debug, Default)]
pub(super) struct ShownDisks {
    known: BTreeMap<NodeId, ShownDisk>,
    /// The nodes whose disks are known better here than on this replica's own disk.
    unsaved: Vec<NodeId>,
}

impl ShownDisk {
    const BYTES: usize = 4 + 8 + 4 + 8 * LeastSaved::CELLS;

    /// Returns the record of what is known about a node's disk.
    fn bytes(&self, node: NodeId) -> Vec<u8> {
        let cells = self.saved.cells();
        let head = [&node.get().to_le_bytes()[..], &self.life.to_le_bytes()].concat();
        let rest = cells.iter().flat_map(|cell| cell.to_le_bytes());
        head.into_iter().chain(self.since.to_le_bytes()).chain(rest).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<(NodeId, Self)> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let (node, rest) = bytes.split_first_chunk()?;
        let (life, rest) = rest.split_first_chunk()?;
        let (since, rest) = rest.split_first_chunk()?;
        let (cells, _) = rest.as_chunks();
        let cells: [[u8; 8]; LeastSaved::CELLS] = cells.try_into().ok()?;
        let saved = LeastSaved::from_cells(cells.map(u64::from_le_bytes));
        let (life, since) = (u64::from_le_bytes(*life), u32::from_le_bytes(*since));
        Some((NodeId(u32::from_le_bytes(*node)), Self { life, since, saved }))
    }
}

impl ShownDisks {
    /// Adds what a record says. A later record of the same disk says more. Returns false if it is
    /// no such record.
    #[must_use]
    pub(super) fn read(&mut self, bytes: &[u8]) -> bool {
        let Some((node, shown)) = ShownDisk::from_bytes(bytes) else { return false };
        self.know(node, shown);
        true
    }

    /// Returns the records of what has not been saved, which is saved now.
    pub(super) fn take_unsaved(&mut self) -> Vec<Vec<u8>> {
        let unsaved = std::mem::take(&mut self.unsaved).into_iter();
        unsaved.filter_map(|node| Some(self.known.get(&node)?.bytes(node))).collect()
    }

    /// Returns the records of everything, which is saved now.
    pub(super) fn take_all(&mut self) -> Vec<Vec<u8>> {
        self.unsaved = self.known.keys().copied().collect();
        self.take_unsaved()
    }

    /// Returns whether a process may follow the earlier ones of its node.
    pub(super) fn may_follow(&mut self, node: NodeId, life: u64, at_start: &DiskAtStart) -> bool {
        let (since, saved) = (at_start.since, LeastSaved::from_cells(at_start.saved));
        let may_follow = self.known.get(&node).is_none_or(|known| {
            known.life == life
                || since > known.since
                || (since == known.since && saved.covers(&known.saved))
        });
        if may_follow {
            self.know(node, ShownDisk { life, since, saved });
        }
        may_follow
    }

    /// Records what a process that was met has shown.
    pub(super) fn note(&mut self, node: NodeId, life: u64, saved: LeastSaved) {
        if let Some(known) = self.known.get(&node).filter(|known| known.life == life) {
            self.know(node, ShownDisk { saved, ..*known });
        }
    }

    fn know(&mut self, node: NodeId, mut shown: ShownDisk) {
        if let Some(known) = self.known.get(&node) {
            if known.since > shown.since {
                return;
            }
            if known.since == shown.since {
                shown.saved = known.saved.and(&shown.saved);
            }
        }
        if self.known.insert(node, shown) != Some(shown) && !self.unsaved.contains(&node) {
            self.unsaved.push(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(3);

    fn saved(promised: u64, stamp: u64, tail: u64) -> LeastSaved {
        LeastSaved::from_cells([promised, stamp, tail, tail])
    }

    fn disk(since: u32, saved: LeastSaved) -> DiskAtStart {
        DiskAtStart { since, saved: saved.cells() }
    }

    /// Returns what a replica knows that has restarted.
    fn restarted(mut disks: ShownDisks) -> ShownDisks {
        let mut read = ShownDisks::default();
        for record in disks.take_unsaved() {
            assert!(read.read(&record));
        }
        assert_eq!(read.known, disks.known);
        read
    }

    #[test]
    fn older_disk_may_not_follow() {
        let mut disks = ShownDisks::default();
        assert!(disks.may_follow(NODE, 1, &disk(1, saved(0, 0, 0))), "nothing is known");
        disks.note(NODE, 1, saved(5, 5, 10));
        disks.note(NODE, 1, saved(5, 5, 8));
        assert!(disks.may_follow(NODE, 1, &disk(1, saved(0, 0, 0))), "the same process");
        let mut disks = restarted(disks);
        let less_delivered = LeastSaved::from_cells([5, 5, 10, 9]);
        for older in [saved(4, 5, 10), saved(5, 4, 12), saved(5, 5, 9), less_delivered] {
            assert!(!disks.may_follow(NODE, 2, &disk(1, older)), "{older:?}");
        }
        let cut = LeastSaved::from_cells([6, 6, 2, 10]);
        assert!(disks.may_follow(NODE, 2, &disk(1, cut)), "a later leader cut the log");
        disks.note(NODE, 1, saved(9, 9, 9));
        assert!(!disks.may_follow(NODE, 3, &disk(1, saved(5, 5, 9))), "two processes ago");
        assert!(disks.may_follow(NODE, 3, &disk(1, cut)), "an earlier process shows nothing");
    }

    #[test]
    fn lost_disk_is_not_compared_with_the_next() {
        let mut disks = ShownDisks::default();
        assert!(disks.may_follow(NODE, 1, &disk(1, saved(5, 5, 10))));
        let mut disks = restarted(disks);
        assert!(disks.may_follow(NODE, 2, &disk(2, saved(0, 0, 0))));
        // The order of the records does not matter.
        let mut records = disks.take_unsaved();
        records.push(ShownDisk { life: 1, since: 1, saved: saved(5, 5, 10) }.bytes(NODE));
        let mut disks = ShownDisks::default();
        assert!(records.iter().all(|record| disks.read(record)));
        assert!(disks.may_follow(NODE, 3, &disk(2, saved(5, 5, 2))));
        assert!(!disks.may_follow(NODE, 4, &disk(1, saved(9, 9, 20))), "the lost disk is back");
    }

    #[test]
    fn only_changes_are_saved() {
        let mut disks = ShownDisks::default();
        assert!(disks.may_follow(NODE, 1, &disk(1, saved(5, 5, 10))));
        assert_eq!(disks.take_unsaved().len(), 1);
        disks.note(NODE, 1, saved(5, 5, 9));
        assert!(disks.take_unsaved().is_empty());
        disks.note(NODE, 1, saved(5, 5, 11));
        disks.note(NODE, 1, saved(5, 5, 12));
        assert_eq!(disks.take_unsaved().len(), 1);
        assert_eq!(disks.take_all().len(), 1);
        assert!(disks.take_unsaved().is_empty());
    }

    #[test]
    fn foreign_record_is_not_read() {
        let mut disks = ShownDisks::default();
        let record = ShownDisk { life: 1, since: 1, saved: saved(1, 1, 1) }.bytes(NODE);
        assert!(!disks.read(&record[1..]));
        assert!(!disks.read(&[record, vec![0]].concat()));
        assert!(disks.known.is_empty());
    }
}
