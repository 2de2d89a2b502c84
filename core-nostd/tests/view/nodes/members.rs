//! Members of one view, and the fabric that carries their writes.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};

use crate::common::{Carries, fabric};
use tramontane_core::check::Checks;
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, Promises, WRITES_MAX, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::{Delivery, Group, JOINS_MAX, Layout, Subgroup};
use tramontane_core::memory::{Line, NodeMemory, Row, RowWriter};
use tramontane_core::multicast::{Link, MemberState, SenderState, SubgroupState};
use tramontane_core::node::{Loan, Options, State, ViewLink, ViewLoan, ViewNode};
use tramontane_core::smc::{HandOffCells, ReadyFlag};
use tramontane_core::view::{PeerState, ViewOptions};

/// Number of slots in every ring.
const WINDOW: u32 = 4;

/// Carries a member's writes to its peers' copies at once, unless the queue to a peer is full; then
/// the post must be retried.
pub struct MemberCarrier {
    pub own: usize,
    /// Each owner's row, as each reader sees it; `None` if all share one memory.
    pub copies: Option<Vec<Vec<RowWriter<'static>>>>,
    pub random: u64,
    /// Percentage of posts that find a queue full.
    pub full_percent: u64,
    pub cut: BTreeSet<u16>,
    /// Peers whose memory cannot be written yet.
    pub unready: BTreeSet<u16>,
    /// Peers that have cut this member off.
    pub denied_by: BTreeSet<u16>,
    /// For each posted list: its destination, and the offset in the row where it begins.
    pub posted: Vec<(u16, usize)>,
    /// Number of barriers, one after each guard that was read from a peer.
    pub barriers: Cell<u32>,
    /// Events to be polled.
    pub events: VecDeque<Event>,
}

impl MemberCarrier {
    pub fn chance(&mut self, percent: u64) -> bool {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33 & 0xff < percent * 256 / 100
    }
}

impl Carries for MemberCarrier {
    fn limits(&self) -> Capabilities {
        Capabilities {
            promises: Promises::WRITE_ORDER,
            writes_max: WRITES_MAX,
            write_bytes_max: 4096,
            guard_bytes_max: 32,
            write_overhead_bytes: 24,
        }
    }
    fn is_ready(&self, peer: Rank) -> bool {
        !self.unready.contains(&peer.0)
    }
    fn cut_off(&mut self, peer: Rank) {
        self.cut.insert(peer.0);
    }
    fn carry(&mut self, to: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        assert!(!self.unready.contains(&to.0), "{to} has no memory that could be written to");
        if self.cut.contains(&to.0) {
            return Err(ErrorKind::PeerLost);
        }
        if self.denied_by.contains(&to.0) {
            return Err(ErrorKind::Revoked);
        }
        if self.chance(self.full_percent) {
            return Err(ErrorKind::QueueFull);
        }
        self.posted.push((to.0, writes[0].target.offset));
        let Some(copies) = &self.copies else { return Ok(()) };
        for write in writes {
            let mut bytes = vec![0; write.length];
            let row = copies[self.own][self.own].reader();
            row.read(write.source.offset, &mut bytes).map_err(|_| ErrorKind::OutOfRange)?;
            copies[self.own][to.index()]
                .apply(write.target.offset, &bytes)
                .map_err(|_| ErrorKind::OutOfRange)?;
        }
        Ok(())
    }
    fn barrier(&self) {
        self.barriers.set(self.barriers.get() + 1);
    }
    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

fabric!(MemberCarrier);

/// One member in one view.
pub struct NodeMember {
    pub node: ViewNode<'static>,
    pub fabric: MemberCarrier,
    pub layout: Layout<'static>,
    /// The member's row, for writing values that no correct member writes.
    pub row: RowWriter<'static>,
    /// Number of calls after which the next view's memory is ready.
    pub calls: u32,
}

fn leak<T>(items: Vec<T>) -> &'static mut [T] {
    Box::leak(items.into())
}

fn lines(bytes: usize) -> &'static [Line] {
    leak((0..bytes / 64).map(|_| Line::new()).collect())
}

/// Opens all members of a view, with fresh memory.
pub fn open(id: u64, ids: &[NodeId], shared: bool, seed: u64) -> Vec<NodeMember> {
    open_with(id, ids, shared, seed, (1, Options::default()))
}

/// Opens a view like `open`, with several subgroups that each have all members.
pub fn open_with(
    id: u64,
    ids: &[NodeId],
    shared: bool,
    seed: u64,
    (subgroups, node_options): (usize, Options),
) -> Vec<NodeMember> {
    open_laid(id, ids, shared, seed, Laid { subgroups, node_options, ..Laid::default() })
}

/// Properties of a layout in these tests, and its nodes' options.
pub struct Laid {
    pub subgroups: usize,
    /// Number of unordered subgroups, which follow the ordered ones, and of ordered subgroups
    /// without senders, which come last.
    pub unordered: usize,
    /// Number of slots per ring.
    pub window: u32,
    pub node_options: Options,
    pub checks: Checks,
    /// Whether members log their deliveries.
    pub is_logged: bool,
    /// Whether members may send large messages.
    pub is_large: bool,
}

impl Default for Laid {
    fn default() -> Self {
        let node_options = Options::default();
        Self {
            subgroups: 1,
            unordered: 0,
            window: WINDOW,
            node_options,
            checks: Checks::Off,
            is_logged: false,
            is_large: false,
        }
    }
}

/// Opens a view with the described layout.
pub fn open_laid(id: u64, ids: &[NodeId], shared: bool, seed: u64, laid: Laid) -> Vec<NodeMember> {
    let Laid { subgroups, unordered, window, node_options, checks, is_logged, is_large } = laid;
    let count = ids.len();
    let ranks: &'static [Rank] = leak((0..count as u16).map(Rank).collect());
    let subgroup =
        |delivery| Subgroup { members: ranks, senders: ranks, window, message_max: 16, delivery };
    let ordered = vec![subgroup(Delivery::Ordered); subgroups];
    let unordered = vec![subgroup(Delivery::Unordered); unordered];
    let silent = Subgroup { senders: &[], ..subgroup(Delivery::Ordered) };
    let silent = vec![silent; unordered.len()];
    let subgroups: &'static [Subgroup<'static>] = leak([ordered, unordered, silent].concat());
    let members: &'static [NodeId] = leak(ids.to_vec());
    let layout = Layout::with_views(Group { members, subgroups }).expect("a good group");
    #[cfg(feature = "durable")]
    let layout = if is_logged {
        let all = (0..subgroups.len() as u16).map(tramontane_core::ids::SubgroupId);
        layout.with_logged(leak(all.collect())).expect("ordered subgroups")
    } else {
        layout
    };
    #[cfg(not(feature = "durable"))]
    assert!(!is_logged, "there are no logs without the feature");
    #[cfg(feature = "blocks")]
    let layout = if is_large {
        layout.with_large(&[tramontane_core::ids::SubgroupId(0)]).expect("it has that subgroup")
    } else {
        layout
    };
    #[cfg(not(feature = "blocks"))]
    assert!(!is_large, "there are no large messages without the feature");
    let layout = if checks.is_on() { layout.with_checks().expect("small") } else { layout };
    let copies: Vec<Vec<RowWriter<'static>>> = ranks
        .iter()
        .map(|owner| {
            let one = lines(layout.row_bytes(*owner));
            let copy = |_| {
                RowWriter::from_lines(if shared { one } else { lines(layout.row_bytes(*owner)) })
            };
            ranks.iter().map(copy).collect()
        })
        .collect();
    let options = ViewOptions {
        heartbeat_interval_ns: 1_000,
        failure_timeout_ns: 20_000,
        first_timeout_ns: 40_000,
        members_max: 8,
        majority: true,
    };
    let open_one = |rank: &Rank| {
        let sizes = layout.state_sizes(*rank);
        let rows: &'static [Row<'static>] =
            leak(copies.iter().map(|readers| readers[rank.index()].reader()).collect());
        let row = copies[rank.index()][rank.index()];
        let cells = leak((0..sizes.handoffs).map(|_| HandOffCells::new()).collect());
        let ready = leak((0..sizes.ready).map(|_| ReadyFlag::new()).collect());
        let loan = Loan {
            // SAFETY: there is one node per member; copies are written by posts, in order.
            memory: unsafe { NodeMemory::new(rows, row, cells, ready) },
            state: State {
                subgroups: leak(vec![SubgroupState::VACANT; sizes.subgroups]),
                senders: leak(vec![SenderState::VACANT; sizes.senders]),
                members: leak(vec![MemberState::VACANT; sizes.members]),
                links: leak(vec![Link::VACANT; sizes.links]),
            },
        };
        let fabric = MemberCarrier {
            own: rank.index(),
            copies: if shared { None } else { Some(copies.clone()) },
            random: seed ^ u64::from(rank.0) << 32 | id,
            full_percent: 20,
            cut: BTreeSet::new(),
            unready: BTreeSet::new(),
            denied_by: BTreeSet::new(),
            posted: Vec::new(),
            barriers: Cell::new(0),
            events: VecDeque::new(),
        };
        let view = ViewId(id);
        let capabilities = fabric.capabilities();
        let loan = ViewLoan {
            node: loan,
            peers: leak(vec![PeerState::default(); count]),
            next: leak(vec![NodeId(0); count.max(8) + JOINS_MAX]),
            links: leak(vec![ViewLink::default(); count]),
        };
        let node = ViewNode::open(view, layout, *rank, loan, node_options, options, capabilities)
            .expect("it opens");
        let row = copies[rank.index()][rank.index()];
        NodeMember { node, fabric, layout, row, calls: 0 }
    };
    ranks.iter().map(open_one).collect()
}
