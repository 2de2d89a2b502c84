//! The memory of one view at one member: its own row, and its copies of the other members' rows.
//!
//! # Invariants
//! - The bytes of a copy are stored, and read by the node, only by the thread that has the member's
//!   turn.
//! - The bytes of posted writes in the local row, and in copies that are passed on, are also read
//!   by that thread, inside calls of the fabric. Only that thread stores cells. Nobody stores into
//!   the payload of a posted slot until every member has delivered it (SMC-2).
//!
//! Therefore, no byte is read or stored here while another thread stores it.

use std::ptr::NonNull;
use std::sync::{Arc, Weak};

use tramontane_core::fabric::{Region, ViewPlan, ViewRows};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::RelayedRing;
use tramontane_core::memory::{OutOfRow, Row, RowWriter};

use super::regions::REGIONS_MAX;
use super::zeroed::ZeroedLines;

/// The reason why a view or a region has no memory over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRows {
    /// The plan has a different node at the rank, or none.
    #[error("node {node} does not have rank {rank} in view {view}; give the rank of this node")]
    NotAMember {
        /// This member's node id.
        node: NodeId,
        /// The rank given for this member.
        rank: Rank,
        /// The view.
        view: ViewId,
    },
    /// The system does not have enough memory.
    #[error(
        "the system does not have {bytes} bytes of memory for a row or region; make rings or logs \
         smaller"
    )]
    TooMuch {
        /// The number of bytes of the row or region that does not fit.
        bytes: usize,
    },
    /// The region has already been created, or is the region of rows.
    #[error("region {region} cannot be created; give each region its own number, from 1")]
    NoSuchRegion {
        /// Its number.
        region: u16,
    },
    /// The maximum number of regions has been reached.
    #[error("this process already has {REGIONS_MAX} regions, the maximum; create fewer")]
    TooManyRegions,
    /// A view has already been created, so its peers would not know of the region.
    #[error("a view has already been created; create all regions before the first view")]
    RegionAfterView,
}

/// All rows of a view, as one member has them. They are fresh for each view, and initially zero
/// (VIE-11).
#[derive(Clone, Debug)]
pub struct Rows(Arc<RowsMemory>);

/// The memory itself.
#[derive(Debug)]
struct RowsMemory {
    view: ViewId,
    own: Rank,
    members: Vec<NodeId>,
    digest: u64,
    /// The rings that other members pass on to this one.
    relayed: Vec<RelayedRing>,
    lines: Vec<ZeroedLines>,
    /// The lines as rows, which remain valid as long as the lines.
    rows: Vec<Row<'static>>,
}

/// Finds the memory of a view while it is still in use.
#[derive(Debug)]
pub(super) struct MadeRows(Weak<RowsMemory>);

impl MadeRows {
    pub(super) fn get(&self) -> Option<Rows> {
        self.0.upgrade().map(Rows)
    }
}

impl Rows {
    /// Allocates the rows of a plan.
    pub(super) fn new(plan: &ViewPlan<'_>) -> Result<Self, NoRows> {
        let ranks = (0..).map(Rank).take(plan.members().len());
        let lines = ranks.map(|rank| ZeroedLines::new(plan.row_bytes(rank)));
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        let rows = lines.iter().map(|lines| {
            let row = Row::from_lines(lines);
            // SAFETY: a mapping, so the address is stable while the lines live. They outlive this
            // row, which is borrowed only as long as the table.
            unsafe { Row::from_raw(row.base(), row.bytes()) }
        });
        Ok(Self(Arc::new(RowsMemory {
            view: plan.view(),
            own: plan.own(),
            members: plan.members().to_vec(),
            digest: plan.digest(),
            relayed: plan.relayed().filter(|ring| ring.to == plan.own()).collect(),
            rows: rows.collect(),
            lines,
        })))
    }

    pub(super) fn downgrade(&self) -> MadeRows {
        MadeRows(Arc::downgrade(&self.0))
    }

    /// Returns whether both are the same memory.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the view for which the rows were allocated.
    #[must_use]
    pub fn view(&self) -> ViewId {
        self.0.view
    }

    /// Returns the digest of the rows' plan.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.0.digest
    }

    /// Returns the length of a member's row in bytes.
    pub(super) fn row_bytes(&self, rank: Rank) -> usize {
        self.0.rows.get(rank.index()).map_or(0, Row::bytes)
    }

    /// Returns the owner of the row that a region stands for, or `None` for other regions.
    pub(super) fn owner_of(&self, region: Region) -> Option<Rank> {
        region.owner().or((region == Region::ROW).then_some(self.0.own))
    }

    /// Returns whether a peer may write a range of the copy of a row.
    pub(super) fn may_write(&self, from: Rank, owner: Rank, offset: usize, length: usize) -> bool {
        let relays = |ring: &RelayedRing| ring.contains(from, owner, offset, length);
        let is_inside = offset.checked_add(length).is_some_and(|end| end <= self.row_bytes(owner));
        is_inside && (from == owner || self.0.relayed.iter().any(relays))
    }

    /// Returns bytes of the local row, or of the copy of a row that is passed on, to be sent.
    pub(super) fn content(
        &self,
        owner: Rank,
        offset: usize,
        length: usize,
    ) -> Result<&[u8], OutOfRow> {
        let base = checked(self.0.rows.get(owner.index()), offset, length)?;
        // SAFETY: in range by the check; nobody stores there in the meantime, by the invariants of
        // this module.
        Ok(unsafe { std::slice::from_raw_parts(base.as_ptr(), length) })
    }

    /// Returns the copy of another member's row, into which that member's writes are stored.
    fn copy_of(&self, rank: Rank) -> Result<RowWriter<'_>, OutOfRow> {
        let lines = self.0.lines.get(rank.index()).filter(|_| rank != self.0.own);
        Ok(RowWriter::from_lines(lines.ok_or(OutOfRow)?))
    }

    /// Stores a write to the copy of another member's row.
    pub(super) fn store(&self, rank: Rank, offset: usize, bytes: &[u8]) -> Result<(), OutOfRow> {
        self.copy_of(rank)?.apply(offset, bytes)
    }

    /// Returns the address of a range in another member's row.
    pub(super) fn address(
        &self,
        rank: Rank,
        offset: usize,
        length: usize,
    ) -> Result<NonNull<u8>, OutOfRow> {
        checked(Some(&self.copy_of(rank)?.reader()), offset, length)
    }
}

impl ViewRows for Rows {
    fn own(&self) -> Rank {
        self.0.own
    }

    fn members(&self) -> &[NodeId] {
        &self.0.members
    }

    fn row(&self) -> RowWriter<'_> {
        RowWriter::from_lines(self.0.lines.get(self.0.own.index()).map_or(&[], |lines| lines))
    }

    fn rows(&self) -> &[Row<'_>] {
        &self.0.rows
    }
}

/// Returns the address of a range, if it is inside the row or region.
pub(super) fn checked(
    row: Option<&Row<'_>>,
    offset: usize,
    length: usize,
) -> Result<NonNull<u8>, OutOfRow> {
    let row = row.ok_or(OutOfRow)?;
    let end = offset.checked_add(length).ok_or(OutOfRow)?;
    if end > row.bytes() {
        return Err(OutOfRow);
    }
    // SAFETY: not past the end of the same row, by the check above.
    Ok(unsafe { row.base().add(offset) })
}

/// Returns rows without a fabric, of view 1 at rank 0, for tests and fuzzers of the code that
/// stores into them.
#[cfg(any(test, fuzzing))]
pub(crate) fn rows_of(digest: u64, row_bytes: &[usize]) -> Rows {
    let members: Vec<NodeId> = (1..).map(NodeId).take(row_bytes.len()).collect();
    let plan = ViewPlan::with_sizes(ViewId(1), Rank(0), &members, row_bytes, digest);
    Rows::new(&plan).unwrap_or_else(|error| panic!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_outside_a_row_are_refused() {
        let rows = rows_of(1, &[64, 100]);
        assert_eq!(
            (rows.row_bytes(Rank(0)), rows.row_bytes(Rank(1)), rows.row_bytes(Rank(2))),
            (64, 128, 0)
        );
        assert_eq!(rows.content(Rank(0), 60, 4).map(<[u8]>::len), Ok(4));
        for (offset, length) in [(60, 5), (65, 0), (usize::MAX, 1), (0, usize::MAX)] {
            assert!(rows.content(Rank(0), offset, length).is_err());
            assert!(rows.address(Rank(1), offset.saturating_add(64), length).is_err());
        }
        assert!(rows.store(Rank(1), 124, &[1; 5]).is_err());
        assert!(rows.store(Rank(0), 0, &[1; 8]).is_err(), "the own row is nobody else's to write");
        assert!(rows.address(Rank(0), 0, 8).is_err(), "as above");
        assert!(rows.address(Rank(2), 0, 0).is_err());
    }

    #[test]
    fn stored_bytes_are_visible_in_row() {
        let rows = rows_of(1, &[64, 64]);
        rows.store(Rank(1), 8, &7_u64.to_ne_bytes()).expect("in the row");
        assert_eq!(rows.rows()[1].cell(8).expect("a cell").load(), 7);
    }

    /// Requirement: REL-1.
    #[test]
    fn only_relays_write_copies_of_other_rows() {
        use tramontane_core::ids::SubgroupId;
        use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
        let members = [1, 2, 3].map(NodeId);
        let ranks = [0, 1, 2].map(Rank);
        let subgroups = [Subgroup {
            members: &ranks,
            senders: &ranks[..1],
            window: 4,
            message_max: 16,
            delivery: Delivery::Ordered,
        }];
        let plain = Layout::new(Group { members: &members, subgroups: &subgroups }).expect("good");
        let relayed = plain.with_relays(&[SubgroupId(0)]).expect("one sender");
        let ring = plain.ring(Rank(0), SubgroupId(0)).expect("it sends").offset;
        let may = |layout: &Layout<'_>, from, owner, offset| {
            let plan = ViewPlan::of_layout(ViewId(1), Rank(2), layout);
            let rows = Rows::new(&plan).expect("memory");
            rows.may_write(Rank(from), Rank(owner), offset, 8)
        };
        assert!(may(&plain, 0, 0, ring) && !may(&plain, 1, 0, ring));
        assert!(may(&relayed, 1, 0, ring) && !may(&relayed, 1, 0, ring - 8));
        assert!(!may(&relayed, 0, 1, 0) && !may(&relayed, 1, 2, 0));
    }

    #[test]
    fn oversized_row_is_an_error() {
        let members = [NodeId(1)];
        let plan = ViewPlan::with_sizes(ViewId(1), Rank(0), &members, &[usize::MAX], 1);
        let error = Rows::new(&plan).expect_err("as long as the address space");
        assert_eq!(error, NoRows::TooMuch { bytes: usize::MAX });
    }
}
