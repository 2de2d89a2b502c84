//! Nodes of the core with changing membership, on top of these members. Each view has a node until
//! the next view is installed. The memory that nodes borrow exists until the test program ends.

use tramontane_core::fabric::{Fabric as _, HostFabric as _, ViewPlan, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::NodeMemory;
use tramontane_core::multicast::{Batch, Link, MemberState, SenderState, SubgroupState};
use tramontane_core::node::{Loan, Options, State, ViewLink, ViewLoan, ViewNode};
use tramontane_core::smc::{HandOffCells, ReadyFlag};
use tramontane_core::view::{NextView, PeerState, Status, ViewOptions};
use tramontane_fixtures::world::Hardware as _;
use tramontane_verbs::Rows;

use super::{DeviceMembers, MILLISECOND_NS, node};

/// One view on a member.
struct MemberView {
    view: ViewId,
    members: Vec<NodeId>,
    node: ViewNode<'static>,
}

/// A member's state, apart from its fabric.
pub struct Seat {
    process: usize,
    part: MemberView,
    /// The next view's members and the memory allocated for it.
    next: Option<(Vec<NodeId>, Rows)>,
}

fn leak<T>(all: impl IntoIterator<Item = T>) -> &'static mut [T] {
    Box::leak(all.into_iter().collect())
}

fn layout(members: &[NodeId]) -> Layout<'static> {
    let members: &[NodeId] = leak(members.iter().copied());
    let ranks: &[Rank] = leak((0..).map(Rank).take(members.len()));
    let (window, message_max, delivery) = (8, 64, Delivery::Ordered);
    let subgroup = Subgroup { members: ranks, senders: ranks, window, message_max, delivery };
    Layout::with_views(Group { members, subgroups: leak([subgroup]) }).expect("a good group")
}

fn process_of(member: NodeId) -> usize {
    (0..).find(|process| node(*process) == member).expect("a process has that number")
}

/// Allocates memory for a view on a process, and opens the view.
fn make(members: &mut DeviceMembers, process: usize, view: ViewId, nodes: &[NodeId]) -> Rows {
    let layout = layout(nodes);
    let own = nodes.iter().position(|member| *member == node(process)).expect("a member");
    let own = Rank(u16::try_from(own).expect("few"));
    let processes: Vec<usize> = nodes.iter().copied().map(process_of).collect();
    let plan = ViewPlan::of_layout(view, own, &layout).with_blocks();
    members.side.note_view(&plan, &processes);
    let member = members.member(process);
    let rows = member.fabric.rows(&plan).expect("memory");
    member.fabric.open(view, &rows.memory()).expect("it opens");
    rows
}

fn part(members: &mut DeviceMembers, process: usize, view: ViewId, rows: &Rows) -> MemberView {
    let rows: &'static Rows = Box::leak(Box::new(rows.clone()));
    let (own, nodes) = (rows.own(), rows.members().to_vec());
    let layout = layout(&nodes);
    let sizes = layout.state_sizes(own);
    let state = State {
        subgroups: leak((0..sizes.subgroups).map(|_| SubgroupState::VACANT)),
        senders: leak((0..sizes.senders).map(|_| SenderState::VACANT)),
        members: leak((0..sizes.members).map(|_| MemberState::VACANT)),
        links: leak((0..sizes.links).map(|_| Link::VACANT)),
    };
    let cells = leak((0..sizes.handoffs).map(|_| HandOffCells::new()));
    let ready = leak((0..sizes.ready).map(|_| ReadyFlag::new()));
    // SAFETY: there is one node per member's memory, to which fake devices write as peers post.
    let memory = unsafe { NodeMemory::new(rows.rows(), rows.row(), cells, ready) };
    let loan = ViewLoan {
        node: Loan { memory, state },
        peers: leak(nodes.iter().map(|_| PeerState::default())),
        next: leak((0..64).map(|_| NodeId::default())),
        links: leak(nodes.iter().map(|_| ViewLink::default())),
    };
    let capabilities = members.member(process).fabric.capabilities();
    let options = ViewOptions::default();
    let node = ViewNode::open(view, layout, own, loan, Options::default(), options, capabilities);
    MemberView { view, members: nodes, node: node.expect("it opens") }
}

/// Starts a node on each process, in the first view.
pub fn start(members: &mut DeviceMembers) -> Vec<Seat> {
    let nodes: Vec<NodeId> = (0..members.members.len()).map(node).collect();
    let made: Vec<Rows> =
        (0..nodes.len()).map(|process| make(members, process, ViewId(1), &nodes)).collect();
    let seat = |(process, rows): (usize, &Rows)| Seat {
        process,
        part: part(members, process, ViewId(1), rows),
        next: None,
    };
    made.iter().enumerate().map(seat).collect()
}

impl Seat {
    pub fn process(&self) -> usize {
        self.process
    }

    /// Returns the current view, and the member's status in it.
    pub fn place(&self) -> (ViewId, Status) {
        (self.part.view, self.part.node.status())
    }

    /// Takes one step and carries out its consequences, such as memory for the next view or the
    /// next view itself.
    pub fn step(&mut self, members: &mut DeviceMembers) {
        let now = Time(members.network.now_ns() + MILLISECOND_NS);
        let (has, mut asked) = (self.next.as_ref().map(|(nodes, _)| nodes.clone()), None);
        let prepare = |next: NextView<'_>| {
            if has.as_deref() == Some(next.members) {
                return true;
            }
            asked = Some((next.id, next.members.to_vec()));
            false
        };
        let mut deliver = |batch: &mut Batch<'_>| batch.for_each(drop);
        let fabric = &mut members.member(self.process).fabric;
        fabric.carry();
        self.part.node.step(now, fabric, &mut deliver, prepare).expect("it steps");
        if let Some((view, nodes)) = asked {
            let rows = make(members, self.process, view, &nodes);
            self.next = Some((nodes, rows));
        }
        let is_installed = self.part.node.status() == Status::Installed;
        if is_installed && self.part.node.is_all_posted() {
            let (_, rows) = self.next.take().expect("it was asked for before");
            let (old, view) = (self.part.view, ViewId(self.part.view.0 + 1));
            self.part = part(members, self.process, view, &rows);
            members.member(self.process).fabric.retire(old);
        }
    }

    /// Returns whether all other members of the view are ready.
    pub fn reaches_all(&self, members: &DeviceMembers) -> bool {
        let fabric = &members.members[self.process].as_ref().expect("it steps").fabric;
        let others = self.part.members.iter().filter(|member| **member != node(self.process));
        let rank = |member: &NodeId| self.part.members.iter().position(|other| other == member);
        others
            .filter_map(rank)
            .all(|rank| fabric.ready(self.part.view, Rank(u16::try_from(rank).expect("few"))))
    }

    /// Returns the members of the view.
    pub fn members(&self) -> &[NodeId] {
        &self.part.members
    }
}
