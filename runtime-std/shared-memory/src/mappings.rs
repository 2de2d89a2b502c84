//! The rows of one view, and the end of a membership.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tramontane_core::fabric::{ViewMemory, ViewRows};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::{Row, RowWriter};

use super::block_queues::BlockQueues;
use super::header::{HEADER_BYTES, Header};
use super::map::Map;
use super::peer::Peer;
use super::region_lanes::RegionLane;
use super::residence::Residence;
use super::row_plan::RowPlan;
use super::view_rows::OwnRow;

/// The memory of one view, shared by [`Mappings`] and the fabric over it.
#[derive(Debug)]
pub(super) struct ViewMappings {
    own: Rank,
    plan: RowPlan,
    /// The mappings by rank: header, row, block queues, and region lanes. Only the local mapping is
    /// writable. A peer's mapping may still read as zeros.
    rows: Vec<Arc<Map>>,
    view: ViewId,
    /// The local row as sent to peers, until it is given up.
    own_row: Mutex<Option<OwnRow>>,
    residence: Arc<Residence>,
    /// The rows, which remain valid as long as their mappings.
    views: Vec<Row<'static>>,
}

/// Returns the rows after their headers.
fn rows_of(plan: &RowPlan, maps: &[Arc<Map>]) -> Vec<Row<'static>> {
    let row = |(rank, map): (Rank, &Arc<Map>)| {
        // SAFETY: header and row are mapped in one piece as long as the map lives, which is stored
        // together with this row; the mapping starts on a page. Its owner is a member with the same
        // program and layout (its digest was compared), and writes it through core's types. It is
        // exposed only while the membership is borrowed.
        unsafe { Row::from_raw(map.base().add(HEADER_BYTES), plan.row_bytes(rank)) }
    };
    (0..).map(Rank).zip(maps).map(row).collect()
}

impl ViewMappings {
    /// Creates the membership of one view. Peers are found later.
    pub(super) fn new(
        residence: &Arc<Residence>,
        view: ViewId,
        own: Rank,
        plan: RowPlan,
        rows: Vec<Arc<Map>>,
        own_row: OwnRow,
    ) -> Self {
        debug_assert_eq!(plan.members().len(), rows.len());
        let residence = Arc::clone(residence);
        let views = rows_of(&plan, &rows);
        Self { own, plan, rows, view, own_row: Mutex::new(Some(own_row)), residence, views }
    }

    pub(super) fn own(&self) -> Rank {
        self.own
    }

    pub(super) fn ids(&self) -> &[NodeId] {
        self.plan.members()
    }

    /// Returns the node at a rank.
    pub(super) fn node_at(&self, rank: Rank) -> Option<NodeId> {
        self.ids().get(rank.index()).copied()
    }

    /// Returns the view's id.
    pub(super) const fn view(&self) -> ViewId {
        self.view
    }

    pub(super) fn residence(&self) -> &Arc<Residence> {
        &self.residence
    }

    /// Returns the mapping at a rank: header, row, and block queues.
    pub(super) fn row_map(&self, rank: Rank) -> Option<&Map> {
        self.rows.get(rank.index()).map(Arc::as_ref)
    }

    /// Returns a member's block queues, if the view has blocks.
    pub(super) fn queues(&self, rank: Rank) -> Option<BlockQueues<'_>> {
        Some(BlockQueues::new(self.row_map(rank)?, self.plan.queues_at(rank)?))
    }

    /// Returns the lane from a region owner to another member.
    #[inline]
    pub(super) fn lane(&self, owner: Rank, of: Rank) -> Option<RegionLane<'_>> {
        let is_member = of.index() < self.rows.len();
        let map = self.row_map(owner).filter(|_| is_member)?;
        Some(RegionLane::new(map, self.plan.lanes_at(owner), of))
    }

    /// Returns the local row for reading.
    #[inline]
    pub(super) fn own_row_reader(&self) -> Row<'_> {
        self.views[self.own.index()]
    }

    /// Returns the size of the local row in bytes.
    pub(super) fn row_bytes(&self) -> usize {
        self.plan.row_bytes(self.own)
    }

    /// Returns whether `memory` is the memory of this view.
    pub(super) fn is(&self, memory: &ViewMemory<'_>) -> bool {
        let is_same = |(one, other): (&Row<'_>, &Row<'_>)| {
            (one.base(), one.bytes()) == (other.base(), other.bytes())
        };
        self.own == memory.own
            && self.ids() == memory.members
            && is_same((&self.views[self.own.index()], &memory.row.reader()))
            && self.views.len() == memory.rows.len()
            && self.views.iter().zip(memory.rows).all(is_same)
    }

    /// Sends the local row to a peer. Returns false if it must be sent again later.
    pub(super) fn send_row(&self, peer: &Peer) -> rustix::io::Result<bool> {
        self.own_row().as_ref().map_or(Ok(false), |row| row.send_to(peer))
    }

    /// Maps a peer's row, if this process has received it. Returns true if it has.
    pub(super) fn put_row(&self, rank: Rank, peer: &Peer) -> rustix::io::Result<bool> {
        let Some(place) = self.row_map(rank) else { return Ok(false) };
        peer.put_row(self.view, self.plan.digest(), place)
    }

    /// Returns whether the owner has given up the mapped row. This happens if a view's list changes
    /// before the view is decided, and its memory is allocated anew, perhaps for the same list.
    pub(super) fn is_given_up(&self, rank: Rank) -> bool {
        self.row_map(rank).is_some_and(|row| Header::new(row).is_over())
    }

    /// Gives up the local row of this view. Processes that have mapped it keep it. Idempotent.
    pub(super) fn give_up(&self) {
        if self.own_row().take().is_some() {
            Header::new(&self.rows[self.own.index()]).set_over();
        }
    }

    /// Returns whether the local row has been given up.
    pub(super) fn is_over(&self) -> bool {
        self.own_row().is_none()
    }

    fn own_row(&self) -> MutexGuard<'_, Option<OwnRow>> {
        self.own_row.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ViewMappings {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// The memory of one view in one process. It contains every member's row, of which only the local
/// one is writable ([`Residence::rows`]).
///
/// Rows are borrowed from this value. The memory is unmapped when both this value and the
/// [`SharedMemory`](super::SharedMemory) over it have been dropped. Peers keep their own mappings
/// until they unmap them.
#[derive(Clone, Debug)]
pub struct Mappings {
    membership: Arc<ViewMappings>,
}

impl Mappings {
    pub(super) fn over(membership: ViewMappings) -> Self {
        Self { membership: Arc::new(membership) }
    }

    pub(super) fn membership(&self) -> &Arc<ViewMappings> {
        &self.membership
    }

    /// Returns this process's residence in the group.
    #[must_use]
    pub fn residence(&self) -> &Arc<Residence> {
        self.membership.residence()
    }

    /// Deliberately leaves the group, with all views. See [`Residence::leave`].
    pub fn leave(&self) {
        self.membership.residence.leave();
    }
}

impl ViewRows for Mappings {
    fn own(&self) -> Rank {
        self.membership.own
    }

    fn members(&self) -> &[NodeId] {
        self.membership.ids()
    }

    fn row(&self) -> RowWriter<'_> {
        let row = &self.membership.views[self.membership.own.index()];
        // SAFETY: as in `rows_of`, and mapped writable. This row is written only through core's
        // types.
        unsafe { RowWriter::from_raw(row.base(), row.bytes()) }
    }

    /// A row that is still missing reads as zeros.
    fn rows(&self) -> &[Row<'_>] {
        &self.membership.views
    }
}
