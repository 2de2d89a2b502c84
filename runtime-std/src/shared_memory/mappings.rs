//! The rows of one view, and the end of a membership.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::{Row, RowWriter};

use super::desk::Desk;
use super::futex::Bell;
use super::header::{HEADER_BYTES, Header, State};
use super::map::Map;
use super::peer::Peer;
use super::residence::Residence;
use super::row_plan::RowPlan;

/// The name of the own row of one view. It goes when this is dropped; the memory stays while it is mapped.
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
    /// By rank: header, row, and desk where there is one. The own one can be written; a peer's may be zeros still, where views change.
    rows: Vec<Arc<Map>>,
    /// By rank: the process that was met before the rows were there, as in a fixed membership.
    met: Vec<Option<Arc<Peer>>>,
    /// Which view, and the digest of its rows. None in a fixed membership, whose one view may have any id.
    view: Option<(ViewId, u64)>,
    /// The own row's name, where a view has one of its own.
    own_row: Mutex<Option<OwnRow>>,
    residence: Arc<Residence>,
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
        Self { own, plan, rows, met, view: None, own_row: Mutex::new(None), residence }
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
        Self { own, plan, rows, met, view, own_row: Mutex::new(Some(own_row)), residence }
    }

    pub(super) fn own(&self) -> Rank {
        self.own
    }

    pub(super) fn ids(&self) -> &[NodeId] {
        self.plan.members()
    }

    /// Who was met before the rows were there, in rank order.
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

    /// The own row's address and size: what a fabric is opened with must be this.
    pub(super) fn own_row(&self) -> (NonNull<u8>, usize) {
        self.row_at(self.own, &self.rows[self.own.index()])
    }

    /// Where a row starts, behind its header, and how long it is.
    fn row_at(&self, rank: Rank, map: &Map) -> (NonNull<u8>, usize) {
        // SAFETY: header and row are mapped in one piece.
        (unsafe { map.base().add(HEADER_BYTES) }, self.plan.row_bytes(rank))
    }

    /// Gives up the own row of this view, in its header and by its name. Who has mapped it keeps it. Idempotent.
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

/// The memory of one view at one process: every member's row, the own one writable. That of a group that has come
/// together ([`Rendezvous`](super::Rendezvous)), or of one view of several ([`Residence::view`]).
///
/// Rows are borrowed from it. When it and the [`SharedMemory`](super::SharedMemory) over it are dropped, the
/// memory is unmapped, and the files behind it are removed. Peers that still map them keep them until they
/// unmap them in turn.
#[derive(Debug)]
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

    /// This member's rank.
    #[must_use]
    pub fn own(&self) -> Rank {
        self.membership.own
    }

    /// The members' node ids, in rank order.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        self.membership.ids()
    }

    /// This member's own row, to be written.
    #[must_use]
    pub fn row(&self) -> RowWriter<'_> {
        let (base, bytes) = self.membership.own_row();
        // SAFETY: mapped writable, `bytes` long from `base`, while the membership lives, which `self` keeps
        // alive; it starts on a page. This row is written through core's types alone.
        unsafe { RowWriter::from_raw(base, bytes) }
    }

    /// All members' rows in rank order, to be read; the own one included. One that is not there yet is zeros.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<'_>> {
        let row = |(rank, map): (Rank, &Arc<Map>)| {
            let (base, bytes) = self.membership.row_at(rank, map);
            // SAFETY: mapped, `bytes` long from `base`, while the membership lives, which `self` keeps
            // alive; it starts on a page. Its owner is a member of the same program and layout
            // (version and digest were compared), and writes it through core's types.
            unsafe { Row::from_raw(base, bytes) }
        };
        (0..).map(Rank).zip(&self.membership.rows).map(row).collect()
    }

    /// This process's place in the group: who makes block memory.
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
