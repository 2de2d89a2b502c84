//! A small group on one device: each member with its own context, memory and connections, as processes have
//! them, and met over loopback.

use std::net::TcpListener;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_core::fabric::{ErrorKind, Fabric, ViewMemory};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_mesh::{Address, MeshOptions, SharedKey};
use tramontane_verbs::devices::Wanted;
use tramontane_verbs::{JoinError, JoinOptions, Joined, Limits, RegionMemory, join};

#[allow(dead_code, reason = "not every test runs whole nodes")]
pub mod nodes;

/// The view of all groups here.
pub const VIEW: ViewId = ViewId(1);

/// What a group is like.
#[derive(Clone, Debug)]
pub struct Shape {
    pub members: u16,
    pub row_bytes: usize,
    /// Another size for each member's row, where they differ.
    pub row_sizes: Option<Vec<usize>>,
    pub digest: u64,
    pub limits: Limits,
    pub regions: Vec<RegionMemory>,
    pub blocks: bool,
    pub key: Option<SharedKey>,
    pub wanted: Wanted,
    /// What the last member wants instead.
    pub last_wanted: Option<Wanted>,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            members: 3,
            row_bytes: 16_384,
            row_sizes: None,
            digest: 99,
            limits: Limits::default(),
            regions: Vec::new(),
            blocks: false,
            key: Some(SharedKey::from_bytes([7; 32])),
            wanted: Wanted::default(),
            last_wanted: None,
        }
    }
}

/// All members join, each in a thread of its own, since each waits for the others.
#[allow(dead_code, reason = "not every test wants to see failures")]
pub fn try_join_all(shape: &Shape) -> Vec<Result<Joined, JoinError>> {
    let ranks: Vec<Rank> = (0..shape.members).map(Rank).collect();
    let listeners: Vec<TcpListener> =
        ranks.iter().map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let addresses: Vec<Address> = listeners
        .iter()
        .map(|listener| listener.local_addr().expect("an address").into())
        .collect();
    let members: Vec<NodeId> = ranks.iter().map(|rank| NodeId(u32::from(rank.0) + 10)).collect();
    let sizes = shape.row_sizes.clone().unwrap_or_else(|| vec![shape.row_bytes; members.len()]);
    let never = AtomicBool::new(false);
    let member = |own: Rank, listener: TcpListener| {
        let other = shape.last_wanted.as_ref().filter(|_| own.index() + 1 == members.len());
        join(JoinOptions {
            mesh: MeshOptions {
                own,
                members: &members,
                addresses: &addresses,
                listener: Some(listener.try_into().expect("it listens")),
                incarnation: None,
                view: VIEW,
                digest: shape.digest,
                key: shape.key.clone(),
                allow_clear: false,
                time_limit: Duration::from_secs(60),
                cancel: &never,
            },
            device: other.unwrap_or(&shape.wanted).clone(),
            limits: shape.limits.clone(),
            row_bytes: &sizes,
            regions: &shape.regions,
            blocks: shape.blocks,
        })
    };
    std::thread::scope(|scope| {
        let member = &member;
        let joining: Vec<_> = ranks
            .iter()
            .zip(listeners)
            .map(|(own, listener)| scope.spawn(move || member(*own, listener)))
            .collect();
        joining.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// The same, where all must succeed.
pub fn join_all(shape: &Shape) -> Vec<Joined> {
    let joined = try_join_all(shape).into_iter();
    joined.map(|joined| joined.unwrap_or_else(|error| panic!("cannot join: {error}"))).collect()
}

/// Opens the view at a member, with the memory that it joined with.
pub fn open(fabric: &mut tramontane_verbs::Verbs) -> Result<(), ErrorKind> {
    let rows = std::sync::Arc::clone(fabric.rows());
    let all = rows.rows();
    let memory =
        ViewMemory { own: rows.own(), members: rows.members(), row: rows.row(), rows: &all };
    fabric.open(VIEW, &memory)
}
