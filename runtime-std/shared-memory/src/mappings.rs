//! The rows of one view, and the end of a membership.

use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use tramontane_core::fabric::{ViewMemory, ViewRows};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::{Row, RowWriter};

use super::desk::Desk;
use super::futex::Bell;
use super::header::{HEADER_BYTES, Header, State};
use super::map::Map;
use super::peer::Peer;
use super::residence::Residence;
use super::row_plan::RowPlan;

/// The name of the own row of one view. It goes when this is dropped; the memory stays while it is
/// mapped.
#[derive(Debug)]
pub(super) struct OwnRow {
    residence: Arc<Residence>,
    name: CString,
}

impl OwnRow {
    pub(super) fn new(residence: &Arc<Residence>, name: CString) -> Self {
        Self { residence: Arc::clone(residence), name }
    }
}

impl Drop for OwnRow {
    fn drop(&mut self) {
        self.residence.remove_file(&self.name);
    }
}

/// The memory of one view: shared by [`Mappings`] and the fabric over it.
#[derive(Debug)]
pub(super) struct Membership {
    own: Rank,
    plan: RowPlan,
    /// By rank: header, row, and desk where there is one. The own one can be written; a peer's may
    /// be zeros still, where views change.
    rows: Vec<Arc<Map>>,
    /// By rank: the process that was met before the rows were there, as in a fixed membership.
    met: Vec<Option<Arc<Peer>>>,
    /// Which view, and the digest of its rows. None in a fixed membership, whose one view may have
    /// any id.
    view: Option<(ViewId, u64)>,
    /// The own row's name, where a view has one of its own.
    own_row: Mutex<Option<OwnRow>>,
    residence: Arc<Residence>,
    /// The rows, which live as long as their maps.
    views: Vec<Row<'static>>,
}

/// The rows behind their headers.
fn rows_of(plan: &RowPlan, maps: &[Arc<Map>]) -> Vec<Row<'static>> {
    let row = |(rank, map): (Rank, &Arc<Map>)| {
        // SAFETY: header and row are mapped in one piece, as long as the map lives, beside which
        // this row is kept; it starts on a page. Its owner is a member of the same program and
        // layout (version and digest were compared), and writes it through core's types. It is
        // shown for no longer than the membership is borrowed.
        unsafe { Row::from_raw(map.base().add(HEADER_BYTES), plan.row_bytes(rank)) }
    };
    (0..).map(Rank).zip(maps).map(row).collect()
}

impl Membership {
    /// The one view of a fixed membership: all are there.
    pub(super) fn fixed(
        residence: Residence,
        own: Rank,
        plan: RowPlan,
        rows: Vec<Arc<Map>>,
        met: Vec<Option<Arc<Peer>>>,
    ) -> Self {
        debug_assert!(plan.members().len() == rows.len() && rows.len() == met.len());
        let residence = Arc::new(residence);
        let views = rows_of(&plan, &rows);
        Self { own, plan, rows, met, view: None, own_row: Mutex::new(None), residence, views }
    }

    /// One view of several: peers are found later.
    pub(super) fn of_view(
        residence: &Arc<Residence>,
        view: ViewId,
        own: Rank,
        plan: RowPlan,
        rows: Vec<Arc<Map>>,
        own_row: OwnRow,
    ) -> Self {
        debug_assert_eq!(plan.members().len(), rows.len());
        let (met, residence) = (vec![None; rows.len()], Arc::clone(residence));
        let view = Some((view, plan.digest()));
        let views = rows_of(&plan, &rows);
        Self { own, plan, rows, met, view, own_row: Mutex::new(Some(own_row)), residence, views }
    }

    pub(super) fn own(&self) -> Rank {
        self.own
    }

    pub(super) fn ids(&self) -> &[NodeId] {
        self.plan.members()
    }

    /// The processes that were met before the rows were there, in rank order.
    pub(super) fn met(&self) -> &[Option<Arc<Peer>>] {
        &self.met
    }

    /// Which view of several this is, and the digest of its rows.
    pub(super) fn view(&self) -> Option<(ViewId, u64)> {
        self.view
    }

    pub(super) fn residence(&self) -> &Arc<Residence> {
        &self.residence
    }

    /// The mapping at a rank: header, row, and desk where there is one.
    pub(super) fn row_map(&self, rank: Rank) -> Option<&Map> {
        self.rows.get(rank.index()).map(Arc::as_ref)
    }

    /// What a member says of blocks, if the view is one with blocks.
    pub(super) fn desk(&self, rank: Rank) -> Option<Desk<'_>> {
        Some(Desk::new(self.row_map(rank)?, self.plan.desk_at(rank)?))
    }

    /// Bytes of the own row.
    pub(super) fn row_bytes(&self) -> usize {
        self.plan.row_bytes(self.own)
    }

    /// Whether these rows were planned so.
    pub(super) fn is_of(&self, plan: &RowPlan) -> bool {
        self.plan == *plan
    }

    /// Whether a view's memory is this.
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

    /// Gives up the own row of this view, in its header and by its name. A process that has mapped
    /// it keeps it. Idempotent.
    pub(super) fn give_up(&self) {
        let own_row = self.own_row.lock().unwrap_or_else(PoisonError::into_inner).take();
        if own_row.is_some() {
            Header::new(&self.rows[self.own.index()]).set_state(State::Left);
        }
    }

    /// Whether the own row has been given up.
    pub(super) fn is_over(&self) -> bool {
        self.view.is_some() && self.own_row.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// The memory of one view at one process: every member's row, the own one writable. That of a group
/// that has come together ([`Rendezvous`](super::Rendezvous)), or of one view of several
/// ([`Residence::rows`]).
///
/// Rows are borrowed from it. When it and the [`SharedMemory`](super::SharedMemory) over it are
/// dropped, the memory is unmapped, and the files behind it are removed. Peers that still map them
/// keep them until they unmap them in turn.
#[derive(Clone, Debug)]
pub struct Mappings {
    membership: Arc<Membership>,
}

impl Mappings {
    pub(super) fn over(membership: Membership) -> Self {
        Self { membership: Arc::new(membership) }
    }

    pub(super) fn membership(&self) -> &Arc<Membership> {
        &self.membership
    }

    pub(super) const fn of(membership: Arc<Membership>) -> Self {
        Self { membership }
    }

    /// This process's place in the group.
    #[must_use]
    pub fn residence(&self) -> &Arc<Residence> {
        self.membership.residence()
    }

    /// A handle on the own doorbell, for application threads of this process.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.membership.residence.bell()
    }

    /// Leaves the group on purpose, with all views: see [`Residence::leave`].
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
        // SAFETY: as in `rows_of`, and mapped writable. This row is written through core's types
        // alone.
        unsafe { RowWriter::from_raw(row.base(), row.bytes()) }
    }

    /// One that is not there yet is zeros.
    fn rows(&self) -> &[Row<'_>] {
        &self.membership.views
    }
}
