//! The rows of a group or a view, with their owners and lengths, and whether blocks are exchanged.
//!
//! # Invariant
//! Two plans with the same digest are the same plan. Peers map each other's rows by this digest.

use tramontane_core::fabric::ViewPlan;
use tramontane_core::ids::{NodeId, Rank};

use super::block_queues;
use super::header::HEADER_BYTES;
use super::region_lanes;

/// Mixed into the digest if blocks are exchanged between the members: "blocks", as a number.
const WITH_BLOCKS: u64 = u64::from_le_bytes(*b"blocks\0\x01");

/// The rows of a group with fixed membership, or of one of several views. They are the same at
/// every member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowPlan {
    members: Vec<NodeId>,
    /// By rank.
    row_bytes: Vec<usize>,
    digest: u64,
    has_blocks: bool,
}

impl RowPlan {
    /// Plans the files of rows. If blocks are exchanged, each file has room for its member's block
    /// queues.
    pub(super) fn new(plan: &ViewPlan<'_>) -> Self {
        let members = plan.members().to_vec();
        let row_bytes =
            (0..).map(Rank).take(members.len()).map(|rank| plan.row_bytes(rank)).collect();
        let has_blocks = plan.has_blocks();
        let mixed = if has_blocks { WITH_BLOCKS } else { 0 };
        let digest = plan.digest().rotate_left(if has_blocks { 17 } else { 0 }) ^ mixed;
        Self { members, row_bytes, digest, has_blocks }
    }

    /// Returns the members' node ids in rank order.
    pub(super) fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// Returns the size of a member's row in bytes, or zero if there is none.
    pub(super) fn row_bytes(&self, rank: Rank) -> usize {
        self.row_bytes.get(rank.index()).copied().unwrap_or(0)
    }

    /// Returns a number that distinguishes this plan from others.
    pub(super) const fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the offset of a member's block queues in the file of its row, if it has any.
    pub(super) fn queues_at(&self, rank: Rank) -> Option<usize> {
        self.has_blocks.then(|| HEADER_BYTES.saturating_add(self.row_bytes(rank)))
    }

    /// Returns the offset of a member's region lanes in the file of its row.
    pub(super) fn lanes_at(&self, rank: Rank) -> usize {
        let queues = if self.has_blocks { block_queues::bytes(self.members.len()) } else { 0 };
        HEADER_BYTES.saturating_add(self.row_bytes(rank)).saturating_add(queues)
    }

    /// Returns the length of the file of a member's row, in bytes.
    pub(super) fn file_bytes(&self, rank: Rank) -> usize {
        self.lanes_at(rank).saturating_add(region_lanes::bytes(self.members.len()))
    }

    /// Returns the lengths of all members' files, in rank order.
    pub(super) fn files_bytes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..).map(Rank).take(self.members.len()).map(|rank| self.file_bytes(rank))
    }
}

#[cfg(test)]
mod tests {
    use tramontane_core::ids::ViewId;

    use super::*;

    #[test]
    fn block_queues_and_lanes_follow_each_row() {
        let members = [NodeId(1), NodeId(2)];
        let planned = ViewPlan::with_sizes(ViewId(1), Rank(0), &members, &[64, 128], 5);
        let plan = RowPlan::new(&planned);
        assert_eq!(
            (plan.row_bytes(Rank(0)), plan.row_bytes(Rank(1)), plan.row_bytes(Rank(2))),
            (64, 128, 0)
        );
        let lanes = region_lanes::bytes(2);
        assert_eq!((plan.queues_at(Rank(1)), plan.lanes_at(Rank(1))), (None, HEADER_BYTES + 128));
        assert_eq!(plan.file_bytes(Rank(1)), HEADER_BYTES + 128 + lanes);
        let blocks = RowPlan::new(&planned.with_blocks());
        assert_ne!(blocks.digest(), plan.digest(), "members that differ in this are told so");
        assert_eq!(blocks.queues_at(Rank(1)), Some(HEADER_BYTES + 128));
        let queues = HEADER_BYTES + 128 + block_queues::bytes(2);
        assert_eq!(
            (blocks.lanes_at(Rank(1)), blocks.file_bytes(Rank(1))),
            (queues, queues + lanes)
        );
    }
}
