//! The disks of the other replicas, as far as they have shown them here.
//!
//! A disk that is replaced with an older copy between two processes of a replica would take back
//! what the replica has promised and reported. A peer that was there notices this: see
//! [`LeastSaved`]. Nobody notices a copy that has everything that the running peers have seen.
//!
//! A peer that has not met the process which returned without its disk compares its successors
//! with the lost disk, and may then reject a sound one. In a group of three no such peer is left,
//! because the other two admit the process.

use std::collections::BTreeMap;

use tramontane_core::ids::NodeId;
use tramontane_core::tram::LeastSaved;

/// The least that the disks of a replica's peers have, each with the last process that was met.
#[derive(Debug, Default)]
pub(super) struct ShownDisks(BTreeMap<NodeId, (u64, LeastSaved)>);

impl ShownDisks {
    /// Records what a process has shown in a view that is given up.
    pub(super) fn note(&mut self, node: NodeId, life: u64, shown: &LeastSaved) {
        let (last, all) = self.0.entry(node).or_default();
        (*last, *all) = (life, all.and(shown));
    }

    /// Returns whether a process may follow the earlier ones of its node. `began_with` is what it
    /// had on its disk when it started; a process without a disk to continue from has nothing to
    /// keep.
    pub(super) fn may_follow(
        &mut self,
        node: NodeId,
        life: u64,
        began_with: Option<&LeastSaved>,
    ) -> bool {
        match (self.0.get(&node), began_with) {
            (None, _) => true,
            (Some((last, _)), _) if *last == life => true,
            (Some((_, shown)), Some(has)) => has.covers(shown),
            (Some(_), None) => {
                self.0.remove(&node);
                true
            }
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

    #[test]
    fn older_disk_may_not_follow() {
        let mut disks = ShownDisks::default();
        assert!(disks.may_follow(NODE, 1, Some(&saved(0, 0, 0))), "nothing is known");
        disks.note(NODE, 1, &saved(5, 5, 10));
        disks.note(NODE, 1, &saved(5, 5, 8));
        assert!(disks.may_follow(NODE, 1, Some(&saved(0, 0, 0))), "the same process");
        let less_delivered = LeastSaved::from_cells([5, 5, 10, 9]);
        for older in [saved(4, 5, 10), saved(5, 4, 12), saved(5, 5, 9), less_delivered] {
            assert!(!disks.may_follow(NODE, 2, Some(&older)), "{older:?}");
        }
        let cut = LeastSaved::from_cells([6, 6, 2, 10]);
        assert!(disks.may_follow(NODE, 2, Some(&cut)), "a later leader cut the log");
        disks.note(NODE, 2, &saved(5, 0, 0));
        assert!(!disks.may_follow(NODE, 3, Some(&saved(5, 5, 9))), "two processes ago");
    }

    #[test]
    fn process_without_a_disk_has_nothing_to_keep() {
        let mut disks = ShownDisks::default();
        disks.note(NODE, 1, &saved(5, 5, 10));
        assert!(disks.may_follow(NODE, 2, None));
        assert!(disks.may_follow(NODE, 3, Some(&saved(5, 5, 2))));
    }
}
