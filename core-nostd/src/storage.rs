//! Storage that a partition declares: arrays sized for a layout at compile time, and lent as
//! slices.
//!
//! A node borrows rows, private state, and the cells that it shares with application threads. A
//! layout computes all sizes in `const fn`; the types in this module are arrays of those sizes.
//! These types are optional: memory from any other source can be lent as slices too.
//!
//! ```
//! use tramontane_core::ids::{NodeId, Rank};
//! use tramontane_core::layout::{Delivery, Group, Layout, StateSizes, Subgroup};
//! use tramontane_core::storage::{RowStorage, lines};
//!
//! const RANKS: [Rank; 2] = [Rank(0), Rank(1)];
//! const LAYOUT: Layout<'static> = match Layout::new(Group {
//!     members: &[NodeId(7), NodeId(9)],
//!     subgroups: &[Subgroup {
//!         members: &RANKS,
//!         senders: &RANKS,
//!         window: 8,
//!         message_max: 100,
//!         delivery: Delivery::Ordered,
//!     }],
//! }) {
//!     Ok(layout) => layout,
//!     Err(_) => panic!("the group is wrong"),
//! };
//! // All members have the same sizes here.
//! const SIZES: StateSizes = LAYOUT.state_sizes(Rank(0));
//! type Row = RowStorage<{ lines(LAYOUT.row_bytes(Rank(0))) }>;
//! type State = tramontane_core::node_storage!(SIZES);
//!
//! static OWN: Row = Row::new();
//! static COPY_OF_THE_PEERS: Row = Row::new();
//! let mut state = State::new();
//! let lent = state.lend(&SIZES).expect("it was cut to these sizes");
//! assert_eq!((lent.ready.len(), OWN.reader().bytes()), (8, LAYOUT.row_bytes(Rank(0))));
//! ```
//!
//! # Fresh memory
//! A view begins with rows of zeros and with unused hand-offs (VIE-11). [`NodeStorage::lend`]
//! resets the hand-offs; [`RowStorage::clear`] zeroes rows that are reused for another view.
//!
//! Requirement: INT-1.

use crate::layout::{CACHE_LINE, StateSizes};
use crate::memory::{Line, Row, RowWriter};
use crate::multicast::{Link, MemberState, SenderState, SubgroupState};
use crate::node::State;
use crate::smc::{HandOffCells, ReadyFlag};
#[cfg(feature = "views")]
use crate::{
    ids::NodeId,
    node::{Loan, ViewLink, ViewLoan},
    view::PeerState,
};

/// Returns the number of lines in a row of `row_bytes` bytes.
#[must_use]
pub const fn lines(row_bytes: usize) -> usize {
    row_bytes.div_ceil(CACHE_LINE)
}

/// The memory of one row, aligned to the largest cache line that a layout can have.
#[derive(Debug)]
#[repr(align(128))]
pub struct RowStorage<const LINES: usize>([Line; LINES]);

impl<const LINES: usize> RowStorage<LINES> {
    /// Returns a row of zeros.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { Line::new() }; LINES])
    }

    /// Returns the row, for reading.
    #[must_use]
    pub const fn reader(&self) -> Row<'_> {
        Row::from_lines(&self.0)
    }

    /// Returns the row, for writing by its owner or by the fabric that keeps this copy up to date.
    #[must_use]
    pub const fn writer(&self) -> RowWriter<'_> {
        RowWriter::from_lines(&self.0)
    }

    /// Zeroes the row for another view. No node may use the row any longer, and no fabric may write
    /// to it.
    pub fn clear(&self) {
        // bound: the lines of a row
        for line in &self.0 {
            line.clear();
        }
    }
}

impl<const LINES: usize> Default for RowStorage<LINES> {
    fn default() -> Self {
        Self::new()
    }
}

/// The memory that a node borrows in addition to its rows: see
/// [`node_storage!`](crate::node_storage) for the six sizes.
#[derive(Debug)]
pub struct NodeStorage<
    const SUBGROUPS: usize,
    const SENDERS: usize,
    const MEMBERS: usize,
    const LINKS: usize,
    const HANDOFFS: usize,
    const READY: usize,
> {
    subgroups: [SubgroupState; SUBGROUPS],
    senders: [SenderState; SENDERS],
    members: [MemberState; MEMBERS],
    links: [Link; LINKS],
    cells: [HandOffCells; HANDOFFS],
    ready: [ReadyFlag; READY],
}

/// Names the type of [`NodeStorage`](crate::storage::NodeStorage) that fits a layout's
/// [`StateSizes`](crate::layout::StateSizes), which must be constant.
#[macro_export]
macro_rules! node_storage {
    ($sizes:expr) => {
        $crate::storage::NodeStorage<
            { $sizes.subgroups },
            { $sizes.senders },
            { $sizes.members },
            { $sizes.links },
            { $sizes.handoffs },
            { $sizes.ready },
        >
    };
}

/// The memory lent from a [`NodeStorage`]: private state, and the cells shared with application
/// threads. [`NodeMemory::new`](crate::memory::NodeMemory::new) takes those cells, together with
/// rows.
#[derive(Debug)]
pub struct Lent<'m> {
    /// Private state.
    pub state: State<'m>,
    /// Hand-offs to application threads.
    pub cells: &'m [HandOffCells],
    /// Ready flags of the hand-offs.
    pub ready: &'m [ReadyFlag],
}

impl<
    const SUBGROUPS: usize,
    const SENDERS: usize,
    const MEMBERS: usize,
    const LINKS: usize,
    const HANDOFFS: usize,
    const READY: usize,
> NodeStorage<SUBGROUPS, SENDERS, MEMBERS, LINKS, HANDOFFS, READY>
{
    /// Creates fresh memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            subgroups: [SubgroupState::VACANT; SUBGROUPS],
            senders: [SenderState::VACANT; SENDERS],
            members: [MemberState::VACANT; MEMBERS],
            links: [Link::VACANT; LINKS],
            cells: [const { HandOffCells::new() }; HANDOFFS],
            ready: [const { ReadyFlag::new() }; READY],
        }
    }

    /// Lends fresh memory of the sizes in a layout. Returns `None` if the layout needs more than
    /// there is.
    pub fn lend(&mut self, sizes: &StateSizes) -> Option<Lent<'_>> {
        // bound: the hand-offs
        for cells in &mut self.cells {
            *cells = HandOffCells::new();
        }
        // bound: the ready flags
        for flag in &mut self.ready {
            *flag = ReadyFlag::new();
        }
        let state = State {
            subgroups: self.subgroups.get_mut(..sizes.subgroups)?,
            senders: self.senders.get_mut(..sizes.senders)?,
            members: self.members.get_mut(..sizes.members)?,
            links: self.links.get_mut(..sizes.links)?,
        };
        let (cells, ready) = (self.cells.get(..sizes.handoffs)?, self.ready.get(..sizes.ready)?);
        Some(Lent { state, cells, ready })
    }
}

impl<
    const SUBGROUPS: usize,
    const SENDERS: usize,
    const MEMBERS: usize,
    const LINKS: usize,
    const HANDOFFS: usize,
    const READY: usize,
> Default for NodeStorage<SUBGROUPS, SENDERS, MEMBERS, LINKS, HANDOFFS, READY>
{
    fn default() -> Self {
        Self::new()
    }
}

/// The memory that the view protocol borrows for a view of up to `PEERS` members whose next view
/// has up to `NEXT` members.
#[cfg(feature = "views")]
#[derive(Debug)]
pub struct ViewStorage<const PEERS: usize, const NEXT: usize> {
    peers: [PeerState; PEERS],
    next: [NodeId; NEXT],
    links: [ViewLink; PEERS],
}

#[cfg(feature = "views")]
impl<const PEERS: usize, const NEXT: usize> ViewStorage<PEERS, NEXT> {
    /// Creates fresh memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            peers: [PeerState::VACANT; PEERS],
            next: [NodeId::ZERO; NEXT],
            links: [ViewLink::VACANT; PEERS],
        }
    }

    /// Adds the memory for a view of `members` members to the node's loan. Returns `None` if there
    /// is not enough.
    pub fn lend<'m>(&'m mut self, node: Loan<'m>, members: usize) -> Option<ViewLoan<'m>> {
        // bound: the members
        for peer in &mut self.peers {
            *peer = PeerState::VACANT;
        }
        let (peers, links) = (self.peers.get_mut(..members)?, self.links.get_mut(..members)?);
        Some(ViewLoan { node, peers, next: &mut self.next, links })
    }
}

#[cfg(feature = "views")]
impl<const PEERS: usize, const NEXT: usize> Default for ViewStorage<PEERS, NEXT> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: StateSizes =
        StateSizes { subgroups: 2, senders: 3, members: 4, links: 2, handoffs: 2, ready: 7 };

    #[test]
    fn storage_lends_requested_sizes_up_to_capacity() {
        let mut storage = <node_storage!(SIZES)>::new();
        let lent = storage.lend(&SIZES).expect("these sizes");
        assert_eq!((lent.state.senders.len(), lent.ready.len(), lent.cells.len()), (3, 7, 2));
        let less = StateSizes { ready: 1, links: 0, ..SIZES };
        let lent = storage.lend(&less).expect("less than that");
        assert_eq!((lent.state.links.len(), lent.ready.len()), (0, 1));
        for more in [
            StateSizes { subgroups: 3, ..SIZES },
            StateSizes { senders: 4, ..SIZES },
            StateSizes { members: 5, ..SIZES },
            StateSizes { links: 3, ..SIZES },
            StateSizes { handoffs: 3, ..SIZES },
            StateSizes { ready: 8, ..SIZES },
        ] {
            assert!(storage.lend(&more).is_none(), "{more:?}");
        }
    }

    /// Each view starts without the state of an earlier view, and a view with too many members is
    /// refused.
    #[cfg(feature = "views")]
    #[test]
    fn view_storage_lends_fresh_state_up_to_capacity() {
        let row = RowStorage::<4>::default();
        let mut views = ViewStorage::<3, 5>::default();
        let mut storage = <node_storage!(SIZES)>::default();
        for (members, is_enough) in [(3, true), (2, true), (4, false), (0, true)] {
            let Lent { state, cells, ready } = storage.lend(&SIZES).expect("these sizes");
            // SAFETY: nothing uses the memory.
            let memory = unsafe { crate::memory::NodeMemory::new(&[], row.writer(), cells, ready) };
            let lent = views.lend(Loan { memory, state }, members);
            assert_eq!(lent.is_some(), is_enough, "{members}");
            let Some(lent) = lent else { continue };
            let sizes = (lent.peers.len(), lent.links.len(), lent.next.len());
            assert_eq!(sizes, (members, members, 5));
            for peer in lent.peers.iter_mut() {
                assert!(!peer.is_lost());
                peer.lost = Some(crate::view::Loss::Reported);
            }
        }
    }

    #[test]
    fn clearing_a_row_zeroes_all_its_bytes() {
        let row = RowStorage::<2>::new();
        assert!(row.writer().apply(0, &[9; 128]).is_ok());
        row.clear();
        let mut bytes = [1; 128];
        assert!(row.reader().read(0, &mut bytes).is_ok());
        assert_eq!((bytes, lines(65), lines(64), lines(0)), ([0; 128], 2, 1, 0));
    }
}
