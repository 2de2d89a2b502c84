//! Whole nodes of the core over the fabric: a group with one subgroup, stepped by the test.

use tramontane_core::fabric::{Fabric, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{NodeMemory, Row};
use tramontane_core::multicast::{Batch, Link, MemberState, SenderState, SubgroupState};
use tramontane_core::node::{Loan, Node, Options, Progress, State};
use tramontane_core::smc::{HandOffCells, Outbox, ReadyFlag};
use tramontane_verbs::{Limits, Rows, Verbs};

use super::{GroupShape, VIEW, join_all};

/// Number of slots per ring.
pub const WINDOW: u32 = 8;

/// Maximum message size in bytes.
pub const MESSAGE_MAX: u32 = 1000;

/// One member, as a polling thread would hold it.
pub struct NodeSeat<'m> {
    pub node: Node<'m>,
    pub fabric: &'m mut Verbs,
    pub rows: &'m [Row<'m>],
    /// `None` at a member that does not send.
    pub outbox: Option<Outbox<'m>>,
    /// Number of messages delivered to this member.
    pub delivered: u64,
}

impl NodeSeat<'_> {
    /// Steps the node once.
    pub fn step(&mut self) -> Progress {
        let delivered = &mut self.delivered;
        let mut deliver = |batch: &mut Batch<'_>| {
            for message in batch {
                assert_eq!(message.payload[..8], delivered.to_le_bytes(), "in order");
                *delivered += 1;
            }
        };
        self.node.step(Time(0), self.fabric, &mut deliver).expect("it steps")
    }

    /// Sends a message of maximum length that begins with its number. Returns `false` if no slot is
    /// free.
    pub fn send(&self, number: u64) -> bool {
        let outbox = self.outbox.as_ref().expect("a sender");
        let bytes = usize::try_from(MESSAGE_MAX).expect("small");
        let Ok(mut reservation) = outbox.reserve(bytes) else { return false };
        reservation.payload()[..8].copy_from_slice(&number.to_le_bytes());
        reservation.commit();
        true
    }
}

struct PrivateMemory {
    cells: Vec<HandOffCells>,
    ready: Vec<ReadyFlag>,
    subgroups: Vec<SubgroupState>,
    senders: Vec<SenderState>,
    members: Vec<MemberState>,
    links: Vec<Link>,
}

/// Runs `body` on the nodes of a joined and opened group in which the first member sends.
pub fn with_nodes(members: u16, limits: Limits, body: impl FnOnce(&mut [NodeSeat<'_>])) {
    let ids: Vec<NodeId> = (0..members).map(|rank| NodeId(u32::from(rank) + 10)).collect();
    let ranks: Vec<Rank> = (0..members).map(Rank).collect();
    let subgroups = [Subgroup {
        members: &ranks,
        senders: &ranks[..1],
        window: WINDOW,
        message_max: MESSAGE_MAX,
        delivery: Delivery::Ordered,
    }];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("a good group");
    let sizes = ranks.iter().map(|rank| layout.row_bytes(*rank)).collect();
    let shape = GroupShape { members, row_sizes: Some(sizes), limits, ..GroupShape::default() };
    let mut joined = join_all(&shape);
    let memory: Vec<Rows> = joined.iter().map(|joined| joined.fabric.rows().clone()).collect();
    let tables: Vec<&[Row<'_>]> = memory.iter().map(|rows| rows.rows()).collect();
    let private = |rank: &Rank| {
        let sizes = layout.state_sizes(*rank);
        PrivateMemory {
            cells: (0..sizes.handoffs).map(|_| HandOffCells::new()).collect(),
            ready: (0..sizes.ready).map(|_| ReadyFlag::new()).collect(),
            subgroups: vec![SubgroupState::VACANT; sizes.subgroups],
            senders: vec![SenderState::VACANT; sizes.senders],
            members: vec![MemberState::VACANT; sizes.members],
            links: vec![Link::VACANT; sizes.links],
        }
    };
    let mut private: Vec<PrivateMemory> = ranks.iter().map(private).collect();
    let mut seats = Vec::new();
    for (index, (joined, private)) in joined.iter_mut().zip(&mut private).enumerate() {
        let PrivateMemory { cells, ready, subgroups, senders, members, links } = private;
        let state = State { subgroups, senders, members, links };
        // SAFETY: there is one node per member's memory, to which devices write as peers post.
        let lent = unsafe { NodeMemory::new(tables[index], memory[index].row(), cells, ready) };
        let loan = Loan { memory: lent, state };
        let capabilities = joined.fabric.capabilities();
        let node = Node::open(VIEW, &layout, ranks[index], loan, Options::default(), capabilities);
        let node = node.expect("it opens");
        let outbox = node.outbox(SubgroupId(0));
        let rows = tables[index];
        seats.push(NodeSeat { node, fabric: &mut joined.fabric, rows, outbox, delivered: 0 });
    }
    body(&mut seats);
}
