//! A group whose members share one memory and are stepped in turn: the smallest possible group.

#![allow(
    clippy::integer_division,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    unused_imports,
    reason = "each test uses its own part"
)]

mod fabric;
pub mod words;

pub(crate) use fabric::{Carries, fabric};
use tramontane_core::fabric::{Capabilities, Fabric, Promises};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Line, NodeMemory, Row, RowWriter};
use tramontane_core::multicast::{Batch, Link, MemberState, SenderState, SubgroupState};
use tramontane_core::node::{Loan, Node, OpenError, Options, Progress, State};
use tramontane_core::smc::{HandOffCells, Outbox, ReadyFlag, ReserveError};

/// A fabric with nothing to do, because all members read the same rows.
pub struct OneMemory;

impl Carries for OneMemory {
    fn limits(&self) -> Capabilities {
        Capabilities {
            promises: Promises::all(),
            writes_max: 16,
            write_bytes_max: usize::MAX,
            guard_bytes_max: 64,
            write_overhead_bytes: 24,
        }
    }
}

fabric!(OneMemory);

/// A member's private state, in addition to the rows.
pub struct Private {
    cells: Vec<HandOffCells>,
    ready: Vec<ReadyFlag>,
    subgroups: Vec<SubgroupState>,
    senders: Vec<SenderState>,
    members: Vec<MemberState>,
    links: Vec<Link>,
}

impl Private {
    pub fn new(layout: &Layout<'_>, rank: Rank) -> Self {
        let sizes = layout.state_sizes(rank);
        Self {
            cells: (0..sizes.handoffs).map(|_| HandOffCells::new()).collect(),
            ready: (0..sizes.ready).map(|_| ReadyFlag::new()).collect(),
            subgroups: vec![SubgroupState::VACANT; sizes.subgroups],
            senders: vec![SenderState::VACANT; sizes.senders],
            members: vec![MemberState::VACANT; sizes.members],
            links: vec![Link::VACANT; sizes.links],
        }
    }

    /// Opens the member's node.
    pub fn open<'m>(
        &'m mut self,
        layout: &Layout<'_>,
        own: Rank,
        rows: &'m [Row<'m>],
        row: RowWriter<'m>,
        capabilities: Capabilities,
    ) -> Node<'m> {
        self.open_with(layout, own, rows, row, capabilities, Options::default())
    }

    /// Opens the member's node with the given options.
    pub fn open_with<'m>(
        &'m mut self,
        layout: &Layout<'_>,
        own: Rank,
        rows: &'m [Row<'m>],
        row: RowWriter<'m>,
        capabilities: Capabilities,
        options: Options,
    ) -> Node<'m> {
        self.try_open(layout, own, rows, row, capabilities, options).expect("it opens")
    }

    /// Opens the member's node, or returns why it cannot be opened.
    pub fn try_open<'m>(
        &'m mut self,
        layout: &Layout<'_>,
        own: Rank,
        rows: &'m [Row<'m>],
        row: RowWriter<'m>,
        capabilities: Capabilities,
        options: Options,
    ) -> Result<Node<'m>, OpenError> {
        let Self { cells, ready, subgroups, senders, members, links } = self;
        let state = State { subgroups, senders, members, links };
        // SAFETY: there is one node per member; tests that also write to rows do so between its
        // steps.
        let memory = unsafe { NodeMemory::new(rows, row, cells, ready) };
        let loan = Loan { memory, state };
        Node::open(ViewId(1), layout, own, loan, options, capabilities)
    }
}

/// Opens every member of a group with one subgroup, and runs `body` on nodes and outboxes.
pub fn with_group(
    members: u16,
    senders: &[u16],
    (window, message_max): (u32, u32),
    delivery: Delivery,
    body: impl FnOnce(&mut [Node<'_>], &[Option<Outbox<'_>>]),
) {
    let ids: Vec<NodeId> = (0..members).map(|id| NodeId(u32::from(id))).collect();
    let ranks: Vec<Rank> = (0..members).map(Rank).collect();
    let senders: Vec<Rank> = senders.iter().copied().map(Rank).collect();
    let subgroups =
        [Subgroup { members: &ranks, senders: &senders, window, message_max, delivery }];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("a good group");
    with_layout(&layout, body);
}

/// Opens every member of a layout, and runs `body` on the nodes and the outboxes of the first
/// subgroup.
pub fn with_layout(layout: &Layout<'_>, body: impl FnOnce(&mut [Node<'_>], &[Option<Outbox<'_>>])) {
    with_rows(layout, |nodes, outboxes, _| body(nodes, outboxes));
}

/// Opens a group like `with_layout`, and also passes the members' rows, so that a test can write
/// values that no correct member writes.
pub fn with_rows(
    layout: &Layout<'_>,
    body: impl FnOnce(&mut [Node<'_>], &[Option<Outbox<'_>>], &[RowWriter<'_>]),
) {
    with_options(layout, Options::default(), body);
}

/// Opens a group like `with_rows`, with the given options.
pub fn with_options(
    layout: &Layout<'_>,
    options: Options,
    body: impl FnOnce(&mut [Node<'_>], &[Option<Outbox<'_>>], &[RowWriter<'_>]),
) {
    let ranks: Vec<Rank> = (0..).map(Rank).take(layout.members()).collect();
    let memory: Vec<Vec<Line>> = ranks
        .iter()
        .map(|rank| (0..layout.row_bytes(*rank) / 64).map(|_| Line::new()).collect())
        .collect();
    let rows: Vec<Row<'_>> = memory.iter().map(|lines| Row::from_lines(lines)).collect();
    let mut private: Vec<Private> = ranks.iter().map(|rank| Private::new(layout, *rank)).collect();
    let mut nodes: Vec<Node<'_>> = Vec::new();
    for (rank, private) in ranks.iter().zip(&mut private) {
        let row = RowWriter::from_lines(&memory[rank.index()]);
        let capabilities = OneMemory.capabilities();
        nodes.push(private.open_with(layout, *rank, &rows, row, capabilities, options));
    }
    let outboxes: Vec<_> = nodes.iter().map(|node| node.outbox(SubgroupId(0))).collect();
    let writers: Vec<_> = memory.iter().map(|lines| RowWriter::from_lines(lines)).collect();
    body(&mut nodes, &outboxes, &writers);
}

/// Sends a copy of `payload`.
pub fn send(outbox: &Outbox<'_>, payload: &[u8]) -> Result<(), ReserveError> {
    let mut reservation = outbox.reserve(payload.len())?;
    reservation.payload().copy_from_slice(payload);
    reservation.commit();
    Ok(())
}

/// Steps every node in turn until a whole turn does nothing, and returns the number of writes that
/// each node posted.
pub fn settle(nodes: &mut [Node<'_>], delivered: &mut [Vec<Vec<u8>>]) -> Vec<u32> {
    settle_by(nodes, |index, node| {
        let mut take = |batch: &mut Batch<'_>| {
            delivered[index].extend(batch.map(|message| message.payload.to_vec()));
        };
        node.step(Time(0), &mut OneMemory, &mut take).expect("it steps")
    })
}

/// Settles the nodes as [`settle`] does, with `step` for each step of a node.
pub fn settle_by(
    nodes: &mut [Node<'_>],
    mut step: impl FnMut(usize, &mut Node<'_>) -> Progress,
) -> Vec<u32> {
    let mut writes = vec![0; nodes.len()];
    for _ in 0..10_000 {
        let mut idle = true;
        for (index, node) in nodes.iter_mut().enumerate() {
            let progress = step(index, node);
            idle &= progress.is_idle();
            writes[index] += progress.writes;
        }
        if idle {
            return writes;
        }
    }
    panic!("the group does not come to rest");
}
