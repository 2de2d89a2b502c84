//! Test members of a group whose views change.

use std::sync::Arc;
use std::time::Duration;

use tramontane_core::fabric::{
    ErrorKind, Event, Fabric as _, HostFabric as _, ViewPlan, ViewRows as _,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_shared_memory::{Error, Mappings, Residence, Root, SharedMemory};

use super::{LONG, NEVER, name};

/// The digest of the description that all members use.
pub const DESCRIPTION: u64 = 77;

/// The group used by all these tests.
pub const GROUP: &str = "views";

/// Returns the layout of a view of these nodes, in which all send.
pub fn layout_of(nodes: &[u32]) -> Layout<'static> {
    layout_with(nodes, 8, 100)
}

/// Returns a layout like [`layout_of`], but with rings of a different size.
pub fn layout_with(nodes: &[u32], window: u32, message_max: u32) -> Layout<'static> {
    let ids: &[NodeId] = nodes.iter().copied().map(NodeId).collect::<Vec<_>>().leak();
    let ranks: &[Rank] = (0..).map(Rank).take(nodes.len()).collect::<Vec<_>>().leak();
    let subgroup = Subgroup {
        members: ranks,
        senders: ranks,
        window,
        message_max,
        delivery: Delivery::Ordered,
    };
    Layout::new(Group { members: ids, subgroups: vec![subgroup].leak() }).expect("a layout")
}

/// Claims a node's id.
pub fn claim(root: &Root, node: u32, incarnation: u64) -> Result<Residence, Error> {
    Residence::claim(root, &name(GROUP), NodeId(node), DESCRIPTION, incarnation, LONG, &NEVER)
}

/// A process, or a stand-in for one.
pub struct Resident {
    pub residence: Arc<Residence>,
    pub fabric: SharedMemory,
}

impl Resident {
    pub fn new(root: &Root, node: u32, incarnation: u64) -> Self {
        let residence = Arc::new(claim(root, node, incarnation).expect("its place"));
        let fabric = SharedMemory::for_residence(&residence);
        Self { residence, fabric }
    }

    /// Allocates memory for a view of these nodes, and opens the view.
    pub fn open(&mut self, view: u64, nodes: &[u32]) -> Result<Mappings, ErrorKind> {
        let node = self.residence.node();
        let own = nodes.iter().position(|listed| NodeId(*listed) == node).expect("a member");
        let own = Rank(u16::try_from(own).expect("few"));
        let memory = self.make(view, &layout_of(nodes), own).expect("there is room for its rows");
        self.open_on(view, &memory)?;
        Ok(memory)
    }

    /// Allocates memory for a view with the given layout.
    pub fn make(&mut self, view: u64, layout: &Layout<'_>, own: Rank) -> Result<Mappings, Error> {
        self.fabric.rows(&ViewPlan::of_layout(ViewId(view), own, layout))
    }

    /// Opens a view on memory that has already been allocated.
    pub fn open_on(&mut self, view: u64, memory: &Mappings) -> Result<(), ErrorKind> {
        self.fabric.open(ViewId(view), &memory.memory())
    }

    /// Returns the pending events, excluding rings.
    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.fabric.poll()).filter(|event| *event != Event::Woken).collect()
    }

    /// Polls until a peer is ready in a view.
    #[track_caller]
    pub fn await_ready(&mut self, view: u64, rank: u16) {
        let started = std::time::Instant::now();
        while !self.fabric.ready(ViewId(view), Rank(rank)) {
            self.fabric.poll();
            assert!(started.elapsed() < LONG, "rank {rank} is never ready in view {view}");
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// Stores a number in the local row.
pub fn store(memory: &Mappings, offset: usize, value: u64) {
    memory.row().cell(offset).expect("a cell").publish(value);
}

/// Loads a number from a member's row.
pub fn see(memory: &Mappings, rank: usize, offset: usize) -> u64 {
    memory.rows()[rank].cell(offset).expect("a cell").load()
}

/// Returns all bytes of a member's row.
pub fn bytes(memory: &Mappings, rank: usize) -> Vec<u8> {
    let row = memory.rows()[rank];
    let mut bytes = vec![0; row.bytes()];
    row.read(0, &mut bytes).expect("the whole row");
    bytes
}
