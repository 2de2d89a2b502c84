//! Everything that a node borrows, and the outboxes together with what they borrow.
//!
//! The core borrows all its memory, which this module owns. With `self_cell`, owner and borrower
//! are stored together, and no unsafe code is needed here.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use self_cell::self_cell;
use tramontane_core::fabric::{ViewMemory, ViewRows};
use tramontane_core::ids::{NodeId, Rank, SubgroupId};
use tramontane_core::layout::{Layout, RingShape};
use tramontane_core::memory::{NodeMemory, Row, RowWriter};
use tramontane_core::multicast::{Link, MemberState, SenderState, SubgroupState};
use tramontane_core::node::{Loan, OpenError, Options, State};
use tramontane_core::smc::{HandOffCells, Outbox, ReadyFlag};

/// The settings of a member. They are the runtime's only set of options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// The options of the core.
    pub options: Options,
    /// The time for which a polling thread stays awake without work before it sleeps. `None` uses
    /// the fabric's preference
    /// ([`HostFabric::idle_time`](tramontane_core::fabric::HostFabric::idle_time)).
    pub idle_time: Option<Duration>,
}

/// The rows of a view, independent of the fabric that allocated them.
trait AnyRows: Send + Sync {
    fn shown(&self) -> ViewMemory<'_>;
}

impl<R: ViewRows> AnyRows for R {
    fn shown(&self) -> ViewMemory<'_> {
        self.memory()
    }
}

/// The rows of a view, allocated by any fabric.
#[derive(Clone)]
pub struct Memory(Arc<dyn AnyRows>);

impl Memory {
    /// Wraps rows allocated by a fabric.
    pub fn new(rows: impl ViewRows) -> Self {
        Self(Arc::new(rows))
    }
}

impl ViewRows for Memory {
    fn own(&self) -> Rank {
        self.0.shown().own
    }

    fn members(&self) -> &[NodeId] {
        self.0.shown().members
    }

    fn row(&self) -> RowWriter<'_> {
        self.0.shown().row
    }

    fn rows(&self) -> &[Row<'_>] {
        self.0.shown().rows
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Memory").field("members", &self.members()).finish_non_exhaustive()
    }
}

/// The location of one subgroup's outbox.
#[derive(Debug)]
struct OutboxPlace {
    subgroup: SubgroupId,
    shape: RingShape,
    ready: Range<usize>,
}

/// The state that a node and its senders share: the memory and the hand-off.
pub(crate) struct Shared {
    memory: Memory,
    cells: Vec<HandOffCells>,
    ready: Vec<ReadyFlag>,
    outboxes: Vec<OutboxPlace>,
    members: Vec<NodeId>,
}

impl Shared {
    pub(crate) fn new(layout: &Layout<'_>, own: Rank, memory: Memory) -> Result<Self, OpenError> {
        let sizes = layout.state_sizes(own);
        let mut outboxes = Vec::with_capacity(sizes.handoffs);
        let mut next = 0;
        let mut subgroup = SubgroupId::ZERO;
        while layout.subgroup(subgroup).is_some() {
            if let Some(shape) = layout.ring(own, subgroup) {
                let end = next + usize::try_from(shape.slots).map_err(|_| OpenError::WrongState)?;
                outboxes.push(OutboxPlace { subgroup, shape, ready: next..end });
                next = end;
            }
            subgroup = subgroup.next();
        }
        Ok(Self {
            memory,
            cells: (0..sizes.handoffs).map(|_| HandOffCells::new()).collect(),
            ready: (0..sizes.ready).map(|_| ReadyFlag::new()).collect(),
            outboxes,
            members: layout.group().members.to_vec(),
        })
    }

    /// Returns everything that is needed to open a node.
    pub(crate) fn loan<'l>(&'l self, state: &'l mut PrivateState) -> Loan<'l> {
        let (rows, row) = (self.memory.rows(), self.memory.row());
        // SAFETY: these hand-offs and flags were made for this row, with one layout and rank. They
        // are used once by the node that this opens, and by the outboxes below. Only the owner
        // writes the local row; fabrics write the peers' rows.
        let memory = unsafe { NodeMemory::new(rows, row, &self.cells, &self.ready) };
        Loan { memory, state: state.lend() }
    }

    pub(crate) fn outbox(&self, subgroup: SubgroupId) -> Option<Outbox<'_>> {
        let index = self.outboxes.iter().position(|place| place.subgroup == subgroup)?;
        let place = self.outboxes.get(index)?;
        let ready = self.ready.get(place.ready.clone())?;
        let cells = std::slice::from_ref(self.cells.get(index)?);
        // SAFETY: as above; the ring, the hand-off and the flags are the node's own for this
        // subgroup.
        let memory =
            unsafe { NodeMemory::new(self.memory.rows(), self.memory.row(), cells, ready) };
        Outbox::new(memory, &place.shape).ok()
    }

    pub(crate) fn node_at(&self, rank: Rank) -> Option<NodeId> {
        self.members.get(rank.index()).copied()
    }
}

/// State that is used only by the node.
pub(crate) struct PrivateState {
    subgroups: Vec<SubgroupState>,
    senders: Vec<SenderState>,
    members: Vec<MemberState>,
    links: Vec<Link>,
}

impl PrivateState {
    /// Allocates the amount that the layout requires.
    pub(crate) fn new(layout: &Layout<'_>, own: Rank) -> Self {
        let sizes = layout.state_sizes(own);
        Self {
            subgroups: vec![SubgroupState::VACANT; sizes.subgroups],
            senders: vec![SenderState::VACANT; sizes.senders],
            members: vec![MemberState::VACANT; sizes.members],
            links: vec![Link::VACANT; sizes.links],
        }
    }

    fn lend(&mut self) -> State<'_> {
        let Self { subgroups, senders, members, links } = self;
        State { subgroups, senders, members, links }
    }
}

self_cell!(
    /// An outbox together with what it borrows.
    pub(crate) struct OutboxCell {
        owner: Arc<Shared>,
        #[covariant]
        dependent: Outbox,
    }
);
