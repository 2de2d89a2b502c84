//! What a node is opened on: rows, and the promise that they are used by the rules of `memory`.
//!
//! Rows and their writers are free to copy: all that they can do is atomic. A node does more. It
//! lends out payloads as plain slices, to be read by an upcall and to be built by a reservation,
//! and no type can keep another writer of the same memory away: in another thread, another process,
//! or another host. So the caller that opens a node promises it here.
//!
//! Without that promise there is no slice of a row. Cells of an outbox cannot be given to another
//! ring:
//!
//! ```compile_fail,E0133
//! use tramontane_core::memory::{Line, NodeMemory, RowWriter};
//! static ROW: [Line; 4] = [const { Line::new() }; 4];
//! let memory = NodeMemory::new(&[], RowWriter::from_lines(&ROW), &[], &[]); // Unsafe to call.
//! ```
//!
//! One promise is good for one node or one outbox:
//!
//! ```compile_fail,E0382
//! use tramontane_core::layout::RingShape;
//! use tramontane_core::memory::NodeMemory;
//! use tramontane_core::smc::Outbox;
//! fn twice(memory: NodeMemory<'static>, shape: &RingShape) {
//!     let first = Outbox::new(memory, shape);
//!     let second = Outbox::new(memory, shape); // Moved already.
//! }
//! ```
//!
//! ```compile_fail,E0599
//! use tramontane_core::memory::NodeMemory;
//! fn copied(memory: &NodeMemory<'static>) -> NodeMemory<'static> {
//!     memory.clone() // There is no such method.
//! }
//! ```
//!
//! Only the node says which slots may be reserved:
//!
//! ```compile_fail,E0432
//! use tramontane_core::smc::HandOff; // Of the core's own.
//! ```
//!
//! Requirement: MEM-1.

use super::row::{Row, RowWriter};
use crate::smc::{HandOffCells, ReadyFlag};

/// The memory of one node, or of one outbox beside it. Neither `Copy` nor `Clone`: one promise for
/// each.
#[derive(Debug)]
pub struct NodeMemory<'m> {
    pub(crate) rows: &'m [Row<'m>],
    pub(crate) row: RowWriter<'m>,
    pub(crate) cells: &'m [HandOffCells],
    pub(crate) ready: &'m [ReadyFlag],
}

static_assertions::assert_not_impl_any!(NodeMemory<'static>: Copy, Clone);

impl<'m> NodeMemory<'m> {
    /// All rows in rank order, the own one included, fresh and all zero (VIE-11); the own row, to
    /// be written; the hand-offs to application threads, one a subgroup that the node sends in; and
    /// their ready flags, one a slot of each.
    ///
    /// For an outbox beside its node ([`Outbox::new`](crate::smc::Outbox::new)): the same row, the
    /// hand-off of its subgroup alone, and that one's flags.
    ///
    /// # Safety
    /// For all of `'m`:
    /// - Over this row, these hand-offs and these flags there is one node, at most, and outboxes:
    ///   all of one layout and rank, each hand-off and its flags for the ring of one subgroup, as
    ///   the node has them.
    /// - Payloads in the own row's rings are stored by that node's reservations alone. Others look
    ///   at one between the store of its slot's counter and the moment at which all members have
    ///   delivered it, and at no other time.
    /// - A payload in a peer's row is stored before the counter that announces it, and not again
    ///   before this node's delivered frontier is past it: whatever brings peers' writes here keeps
    ///   their order, and peers keep to SMC-2. A peer that does not can change bytes while they are
    ///   read, and no more: no read leaves the row.
    #[must_use]
    pub const unsafe fn new(
        rows: &'m [Row<'m>],
        row: RowWriter<'m>,
        cells: &'m [HandOffCells],
        ready: &'m [ReadyFlag],
    ) -> Self {
        Self { rows, row, cells, ready }
    }
}
