//! The memory that a node is opened on: rows, and the promise that they are used according to the
//! rules of `memory`.
//!
//! Rows and their writers can be copied freely, because all their operations are atomic. A node
//! does more: it lends payloads as plain slices, for upcalls to read and for reservations to fill.
//! No type can exclude another writer of the same memory in another thread, process or host. The
//! caller that opens a node therefore promises it here.
//!
//! No slice of a row exists without that promise. The cells of an outbox cannot be used with
//! another ring:
//!
//! ```compile_fail,E0133
//! use tramontane_core::memory::{Line, NodeMemory, RowWriter};
//! static ROW: [Line; 4] = [const { Line::new() }; 4];
//! let memory = NodeMemory::new(&[], RowWriter::from_lines(&ROW), &[], &[]); // `new` is unsafe.
//! ```
//!
//! One promise covers one node or one outbox:
//!
//! ```compile_fail,E0382
//! use tramontane_core::layout::RingShape;
//! use tramontane_core::memory::NodeMemory;
//! use tramontane_core::smc::Outbox;
//! fn twice(memory: NodeMemory<'static>, shape: &RingShape) {
//!     let first = Outbox::new(memory, shape);
//!     let second = Outbox::new(memory, shape); // `memory` has been moved.
//! }
//! ```
//!
//! ```compile_fail,E0599
//! use tramontane_core::memory::NodeMemory;
//! fn copied(memory: &NodeMemory<'static>) -> NodeMemory<'static> {
//!     memory.clone() // There is no method `clone`.
//! }
//! ```
//!
//! Only the node decides which slots may be reserved:
//!
//! ```compile_fail,E0432
//! use tramontane_core::smc::HandOff; // `HandOff` is private.
//! ```
//!
//! Requirement: MEM-1.

use super::row::{Row, RowWriter};
use crate::smc::{HandOffCells, ReadyFlag};

/// The memory of one node, or of one additional outbox. Neither `Copy` nor `Clone`, so that each
/// needs its own promise.
#[derive(Debug)]
pub struct NodeMemory<'m> {
    pub(crate) rows: &'m [Row<'m>],
    pub(crate) row: RowWriter<'m>,
    pub(crate) cells: &'m [HandOffCells],
    pub(crate) ready: &'m [ReadyFlag],
}

static_assertions::assert_not_impl_any!(NodeMemory<'static>: Copy, Clone);

impl<'m> NodeMemory<'m> {
    /// Describes the memory of a node: all rows in rank order, including the local row, fresh and
    /// all zero (VIE-11); the local row for writing; the hand-offs to application threads, one for
    /// each subgroup that the node sends in; and their ready flags, one for each slot of each
    /// hand-off.
    ///
    /// An outbox that is opened separately from its node ([`Outbox::new`](crate::smc::Outbox::new))
    /// takes the same row, but only its subgroup's hand-off and that hand-off's flags.
    ///
    /// # Safety
    /// The caller promises, for all of `'m`:
    /// - At most one node uses this row, these hand-offs and these flags, together with outboxes of
    ///   the same layout and rank. Each hand-off and its flags belong to the ring of one subgroup,
    ///   as in the node.
    /// - Only that node's reservations store payloads in the rings of the local row. Other members
    ///   and threads read a payload only between the store of its slot's counter and the moment at
    ///   which all members have delivered it.
    /// - A payload in a peer's row is stored before the counter that announces it, and its bytes
    ///   are not stored to again before this node's delivered frontier is past it. This requires
    ///   that the carrier of peers' writes keeps their order, and that peers follow SMC-2. A peer
    ///   that does not follow it can change bytes while they are read, but can do no further harm:
    ///   no read leaves the row.
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
