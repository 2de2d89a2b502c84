//! One process of an overlay: its device, its views with other processes, and its replica or
//! client.

use std::collections::BTreeMap;

use tramontane_core::fabric::{
    Area, Capabilities, ErrorKind, Event, Fabric, PermissionEvent, Permissions, Region,
    RegionMemory as _, Token, ViewMemory, ViewRows as _, Write,
};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::memory::{Row, RowWriter};
use tramontane_core::tram::{
    Client, ClientLink, ClientLinks, GroupState, LinkId, LinkState, Memory, MessageState, Overlay,
    Replica, ReplicaId, ReplicaLinks, SourceState,
};
use tramontane_verbs::fake::DeviceName;
use tramontane_verbs::{RegionMemory, Rows, Site, Verbs};

/// The fabrics of all views of one process.
pub struct ShardFabric {
    pub site: Site,
    pub views: BTreeMap<ViewId, Verbs>,
}

impl ShardFabric {
    fn view(&mut self, view: ViewId) -> Result<&mut Verbs, ErrorKind> {
        self.views.get_mut(&view).ok_or(ErrorKind::PeerLost)
    }
}

impl Fabric for ShardFabric {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        self.site.capabilities()
    }

    fn open(&mut self, _: ViewId, _: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        Err(ErrorKind::Other)
    }

    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.views.get(&view).is_some_and(|verbs| verbs.ready(view, peer))
    }

    fn cut(&mut self, view: ViewId, peer: Rank) {
        if let Ok(verbs) = self.view(view) {
            verbs.cut(view, peer);
        }
    }

    fn retire(&mut self, view: ViewId) -> bool {
        self.views.remove(&view);
        true
    }

    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        self.view(view)?.post(view, to, writes, token)
    }

    fn poll(&mut self) -> Option<Event> {
        self.views.values_mut().find_map(Verbs::poll)
    }

    fn wake(&mut self, _: ViewId, _: Rank) {}

    fn arm(&mut self) -> bool {
        false
    }

    fn disarm(&mut self) {}

    fn observe_barrier(&self) {
        self.views.values().take(1).for_each(Verbs::observe_barrier);
    }
}

impl Permissions for ShardFabric {
    fn region_list_bytes_max(&self) -> usize {
        self.site.region_list_bytes_max()
    }

    fn grant(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        self.view(view)?.grant(view, peer, region)
    }

    fn revoke(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        self.view(view)?.revoke(view, peer, region)
    }

    fn may_write(&self, view: ViewId, peer: Rank, region: Region) -> bool {
        self.views.get(&view).is_some_and(|verbs| verbs.may_write(view, peer, region))
    }

    fn read(
        &mut self,
        view: ViewId,
        from: Rank,
        source: Area,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        self.view(view)?.read(view, from, source, into, length, token)
    }

    fn poll_permission(&mut self) -> Option<PermissionEvent> {
        self.views.values_mut().find_map(Verbs::poll_permission)
    }
}

/// The memory of one process.
pub struct ShardMemory {
    pub log: RegionMemory,
    pub links: Vec<Option<(ViewId, Rows)>>,
}

impl Memory for ShardMemory {
    fn log(&self) -> RowWriter<'_> {
        self.log.writer()
    }

    fn link(&self, link: LinkId) -> Option<(RowWriter<'_>, Row<'_>)> {
        let (_, rows) = self.links.get(link.index())?.as_ref()?;
        Some((rows.row(), rows.rows()[1 - rows.own().index()]))
    }
}

pub enum ShardMachine<'s> {
    Replica(Box<Replica<'s>>),
    Client(Box<Client<'s>>),
}

/// A process and what it shares with the world.
pub struct ShardProcess<'s> {
    pub fabric: ShardFabric,
    pub memory: ShardMemory,
    pub machine: ShardMachine<'s>,
    pub device: DeviceName,
    pub is_up: bool,
    /// The time of the next step, in ns.
    pub next_at: u64,
}

type ReplicaLoan = (Vec<LinkState>, Vec<SourceState>, Vec<u64>, Vec<u8>);
type ClientLoan = (Vec<ClientLink>, Vec<GroupState>, Vec<MessageState>, Vec<u8>);

/// The state lent to all processes of a run.
pub struct LentStates {
    pub replicas: Vec<ReplicaLoan>,
    pub clients: Vec<ClientLoan>,
}

impl LentStates {
    pub fn new(overlay: &Overlay) -> Self {
        let limits = overlay.limits();
        let (window, bytes) = (limits.client_window as usize, limits.payload_max as usize);
        let replica = |id: ReplicaId| {
            let links = ReplicaLinks::of(overlay, id.group).len();
            (
                vec![LinkState::default(); links],
                vec![SourceState::default(); usize::from(limits.clients) + 1],
                vec![0; Replica::reply_cells(overlay)],
                vec![0; bytes],
            )
        };
        let client = |_| {
            (
                vec![ClientLink::default(); ClientLinks::of(overlay).len()],
                vec![GroupState::default(); overlay.len()],
                vec![MessageState::default(); window],
                vec![0; window * bytes],
            )
        };
        Self {
            replicas: replicas(overlay).map(replica).collect(),
            clients: (0..limits.clients).map(client).collect(),
        }
    }
}

/// Returns all replicas of an overlay.
pub fn replicas(overlay: &Overlay) -> impl Iterator<Item = ReplicaId> + '_ {
    overlay.all().iter().flat_map(|group| {
        (0..overlay.replicas(group)).map(move |rank| ReplicaId { group, rank: Rank(rank) })
    })
}
