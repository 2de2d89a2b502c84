//! Members that meet over TCP, which remains their side channel. They run in this process or in
//! others.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tramontane_control::{Mesh, MeshOptions, SharedKey};
use tramontane_core::fabric::{
    Fabric as _, HostFabric as _, HostRegions as _, Region, ViewPlan, ViewRows as _,
};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_tcp::{Settings, Tcp};
use tramontane_verbs::devices::Wanted;
use tramontane_verbs::{Limits, RdmaViews, Rows, Site};

use super::{VIEW, device};

/// Time limit for the members to meet.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the node ids of a group.
pub fn ids(members: u16) -> Vec<NodeId> {
    (0..members).map(|rank| NodeId(u32::from(rank) + 10)).collect()
}

/// A member that has met the others and has memory for the view, which is not open yet.
pub struct Beside {
    pub fabric: RdmaViews<Tcp>,
    pub rows: Rows,
}

/// Meets the other members.
pub fn meet(
    wanted: &Wanted,
    own: Rank,
    addresses: &[SocketAddr],
    listener: Option<TcpListener>,
    limits: &Limits,
    row_bytes: usize,
) -> Beside {
    meet_with(wanted, own, addresses, listener, limits, row_bytes, &[])
}

/// Meets the other members, with regions.
fn meet_with(
    wanted: &Wanted,
    own: Rank,
    addresses: &[SocketAddr],
    listener: Option<TcpListener>,
    limits: &Limits,
    row_bytes: usize,
    regions: &[(Region, usize)],
) -> Beside {
    let mut fabric = meet_alone(wanted, own, addresses, listener, limits);
    for (region, bytes) in regions {
        fabric.region(*region, *bytes).expect("memory");
    }
    let members = ids(u16::try_from(addresses.len()).expect("few"));
    let row_bytes = vec![row_bytes; members.len()];
    let plan = ViewPlan::with_sizes(VIEW, own, &members, &row_bytes, 7).with_blocks();
    let rows = fabric.rows(&plan).expect("memory");
    Beside { fabric, rows }
}

/// Meets the other members, but allocates nothing.
fn meet_alone(
    wanted: &Wanted,
    own: Rank,
    addresses: &[SocketAddr],
    listener: Option<TcpListener>,
    limits: &Limits,
) -> RdmaViews<Tcp> {
    let never = AtomicBool::new(false);
    let members = ids(u16::try_from(addresses.len()).expect("few"));
    let addresses: Vec<_> = addresses.iter().copied().map(Into::into).collect();
    let mesh = Mesh::join(MeshOptions {
        own,
        members: &members,
        addresses: &addresses,
        listener: listener.map(|listener| listener.try_into().expect("it listens")),
        incarnation: None,
        view: VIEW,
        digest: 7,
        key: Some(SharedKey::from_bytes([9; 32])),
        allow_clear: false,
        time_limit: PATIENCE,
        cancel: &never,
    });
    let mesh = mesh.unwrap_or_else(|error| panic!("{error}"));
    let mut tcp = Tcp::new(members[own.index()], Settings::default()).expect("descriptors");
    for (peer, connection) in members.iter().zip(mesh.into_connections()) {
        if let Some(connection) = connection {
            tcp.add_peer(*peer, connection).expect("a socket");
        }
    }
    let site = Site::open(wanted, limits, None).expect("the lab has a device");
    RdmaViews::new(site, tcp).expect("descriptors")
}

/// Returns all members of a group in this process.
pub fn meet_all(members: u16, limits: &Limits, row_bytes: usize) -> Vec<Beside> {
    meet_all_with(members, limits, row_bytes, &[])
}

/// Returns all members of a group in this process, with regions.
pub fn meet_all_with(
    members: u16,
    limits: &Limits,
    row_bytes: usize,
    regions: &[(Region, usize)],
) -> Vec<Beside> {
    all(members, |wanted, own, addresses, listener| {
        meet_with(wanted, own, addresses, Some(listener), limits, row_bytes, regions)
    })
}

/// Returns all members of a group in this process, which have not allocated anything yet.
pub fn meet_all_alone(members: u16, limits: &Limits) -> Vec<RdmaViews<Tcp>> {
    all(members, |wanted, own, addresses, listener| {
        meet_alone(wanted, own, addresses, Some(listener), limits)
    })
}

/// Runs each member in a thread, because each waits for the others.
fn all<M: Send>(
    members: u16,
    meet: impl Fn(&Wanted, Rank, &[SocketAddr], TcpListener) -> M + Sync,
) -> Vec<M> {
    let listeners: Vec<TcpListener> =
        (0..members).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let addresses: Vec<SocketAddr> =
        listeners.iter().map(|listener| listener.local_addr().expect("an address")).collect();
    let (wanted, meet, addresses) = (&device::wanted(), &meet, &addresses);
    std::thread::scope(|scope| {
        let start = |(own, listener)| scope.spawn(move || meet(wanted, own, addresses, listener));
        let meeting: Vec<_> = (0..).map(Rank).zip(listeners).map(start).collect();
        meeting.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

impl Beside {
    /// Opens the view.
    pub fn open(&mut self) {
        self.fabric.open(VIEW, &self.rows.memory()).expect("it opens");
    }

    /// Returns whether every peer is ready.
    pub fn is_ready(&mut self) -> bool {
        self.fabric.carry();
        let own = self.rows.own();
        let mut peers = (0..).map(Rank).take(self.rows.members().len()).filter(|rank| *rank != own);
        peers.all(|peer| self.fabric.ready(VIEW, peer))
    }
}

/// Opens the view on all members, and waits until all are ready.
pub fn open_all(members: &mut [Beside]) {
    members.iter_mut().for_each(Beside::open);
    let until = Instant::now() + PATIENCE;
    while !members.iter_mut().fold(true, |all, member| all & member.is_ready()) {
        assert!(Instant::now() < until, "not all are ready");
        std::thread::sleep(Duration::from_micros(100));
    }
    for member in members {
        while member.fabric.poll().is_some() {}
    }
}
