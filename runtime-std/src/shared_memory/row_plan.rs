//! Which rows a group or a view has: whose, how long each is, and whether blocks go between them.
//!
//! # Invariant
//! Two plans of one digest are the same plan: peers map each other's rows by it.

use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::{CACHE_LINE, Layout};

use super::desk;
use super::header::HEADER_BYTES;

/// What a digest is mixed with where blocks go between the members: "blocks", as a number.
const WITH_BLOCKS: u64 = u64::from_le_bytes(*b"blocks\0\x01");

/// The rows of a group of fixed membership, or of one view of several; the same at every member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlan {
    members: Vec<NodeId>,
    /// By rank.
    row_bytes: Vec<usize>,
    digest: u64,
    has_blocks: bool,
}

impl RowPlan {
    /// The rows of a layout; with blocks, if it has channels for such.
    #[must_use]
    pub fn of_layout(layout: &Layout<'_>) -> Self {
        let ranks = (0..).map(Rank).take(layout.members());
        let row_bytes: Vec<usize> = ranks.map(|rank| layout.row_bytes(rank)).collect();
        let plan = Self::with_sizes(layout.group().members, layout.digest(), &row_bytes);
        if layout.channels() > 0 { plan.with_blocks() } else { plan }
    }

    /// Rows of so many bytes each, by rank, rounded up to whole cache lines: for cells without a layout. `digest` is a
    /// number that other plans of the same members do not have.
    ///
    /// # Panics
    /// If there is not one size for each member.
    #[must_use]
    pub fn with_sizes(members: &[NodeId], digest: u64, row_bytes: &[usize]) -> Self {
        assert_eq!(members.len(), row_bytes.len(), "one row for each member");
        let whole =
            |bytes: &usize| bytes.checked_next_multiple_of(CACHE_LINE).unwrap_or(usize::MAX);
        let row_bytes = row_bytes.iter().map(whole).collect();
        Self { members: members.to_vec(), row_bytes, digest, has_blocks: false }
    }

    /// The same rows, with a place at each member for what it says of blocks.
    #[must_use]
    pub fn with_blocks(mut self) -> Self {
        if !self.has_blocks {
            (self.has_blocks, self.digest) = (true, self.digest.rotate_left(17) ^ WITH_BLOCKS);
        }
        self
    }

    /// The members' node ids, in rank order.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// Bytes of a member's row; zero if there is none.
    #[must_use]
    pub fn row_bytes(&self, rank: Rank) -> usize {
        self.row_bytes.get(rank.index()).copied().unwrap_or(0)
    }

    /// What tells this plan from others.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// Whether blocks go between the members.
    #[must_use]
    pub const fn has_blocks(&self) -> bool {
        self.has_blocks
    }

    /// Where a member's desk stands in the file of its row, if it has one.
    pub(super) fn desk_at(&self, rank: Rank) -> Option<usize> {
        self.has_blocks.then(|| HEADER_BYTES.saturating_add(self.row_bytes(rank)))
    }

    /// The whole of the file of a member's row, in bytes.
    pub(super) fn file_bytes(&self, rank: Rank) -> usize {
        let desk = if self.has_blocks { desk::bytes(self.members.len()) } else { 0 };
        HEADER_BYTES.saturating_add(self.row_bytes(rank)).saturating_add(desk)
    }

    /// The same of all members, in rank order.
    pub(super) fn files_bytes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..).map(Rank).take(self.members.len()).map(|rank| self.file_bytes(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_whole_cache_lines_and_a_desk_stands_behind_them() {
        let plan = RowPlan::with_sizes(&[NodeId(1), NodeId(2)], 5, &[1, 128]);
        assert_eq!(
            (plan.row_bytes(Rank(0)), plan.row_bytes(Rank(1)), plan.row_bytes(Rank(2))),
            (64, 128, 0)
        );
        assert_eq!((plan.desk_at(Rank(1)), plan.file_bytes(Rank(1))), (None, HEADER_BYTES + 128));
        let blocks = plan.clone().with_blocks();
        assert_ne!(blocks.digest(), plan.digest(), "members that differ in this are told so");
        assert_eq!(blocks.desk_at(Rank(1)), Some(HEADER_BYTES + 128));
        assert_eq!(blocks.file_bytes(Rank(1)), HEADER_BYTES + 128 + desk::bytes(2));
        assert_eq!(blocks.clone().with_blocks(), blocks);
    }
}
