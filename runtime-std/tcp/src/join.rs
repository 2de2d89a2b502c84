//! Meeting the other members: connections to all, the first view open at all.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_control::{Address, Listener, Mesh, MeshError, MeshOptions, SharedKey};
use tramontane_core::fabric::{ErrorKind, Fabric, HostFabric, ViewPlan, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::Layout;

use super::connection::Settings;
use super::fabric::Tcp;
use super::memory::{NoRows, Rows};

/// How often a wait looks whether it should end.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Where the members are, and how they meet.
#[derive(Debug)]
pub struct TcpOptions<'t> {
    /// Where each member listens, in rank order.
    pub addresses: &'t [SocketAddr],
    /// What all members must have been told alike beside the layout, as a number; mixed with the
    /// layout's digest.
    pub terms: u64,
    /// A socket that listens at the own address already, if there is one.
    pub listener: Option<TcpListener>,
    /// The view that starts.
    pub view: ViewId,
    /// The key that all members share.
    pub key: Option<SharedKey>,
    /// Whether, without a key, other addresses than loopback may be used.
    pub allow_clear: bool,
    /// How long to wait for all members.
    pub time_limit: Duration,
    /// Ends the wait when it becomes true.
    pub cancel: &'t AtomicBool,
    /// How connections are set.
    pub settings: Settings,
}

/// Why the members did not come together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TcpError {
    /// They did not meet.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// A member that had come was lost before all were ready.
    #[error("member {peer} ended, or stopped, while the group was starting; start all again")]
    NotReady {
        /// The first such member.
        peer: NodeId,
    },
    /// The system refused something.
    #[error("cannot set up the connections: {0}")]
    Io(#[from] std::io::Error),
    /// There is no memory for the rows.
    #[error(transparent)]
    Memory(#[from] NoRows),
    /// The fabric refused the memory that it made itself.
    #[error("the TCP fabric cannot be opened: {0}")]
    Fabric(#[from] ErrorKind),
}

/// Meets all other members, and opens the view at all: a member that returns from here may post.
///
/// # Errors
/// [`TcpError`]; nothing is left behind then.
pub fn meet(
    layout: &Layout<'_>,
    own: Rank,
    options: TcpOptions<'_>,
) -> Result<(Tcp, Rows), TcpError> {
    let (until, cancel, view) = (Instant::now() + options.time_limit, options.cancel, options.view);
    let mut fabric = connect(layout, own, options)?;
    let rows = fabric.rows(&ViewPlan::of_layout(view, own, layout))?;
    fabric.open(view, &rows.memory())?;
    await_ready(&mut fabric, view, (own, layout.group().members), until, cancel)?;
    Ok((fabric, rows))
}

/// Meets all other members, and opens no view.
///
/// # Errors
/// [`TcpError`]; nothing is left behind then.
pub fn connect(layout: &Layout<'_>, own: Rank, options: TcpOptions<'_>) -> Result<Tcp, TcpError> {
    let TcpOptions {
        addresses,
        terms,
        listener,
        view,
        key,
        allow_clear,
        time_limit,
        cancel,
        settings,
    } = options;
    let members = layout.group().members;
    let digest = layout.digest() ^ terms;
    let addresses: Vec<Address> = addresses.iter().copied().map(Address::from).collect();
    let listener = listener.map(Listener::try_from).transpose()?;
    let mesh = Mesh::join(MeshOptions {
        own,
        members,
        addresses: &addresses,
        listener,
        incarnation: None,
        view,
        digest,
        key,
        allow_clear,
        time_limit,
        cancel,
    })?;
    let mut fabric = Tcp::new(members.get(own.index()).copied().unwrap_or_default(), settings)?;
    for (member, connection) in members.iter().zip(mesh.into_connections()) {
        if let Some(connection) = connection {
            fabric.add_peer(*member, connection)?;
        }
    }
    Ok(fabric)
}

/// Waits until every peer has opened the view. Events stay for the first poll.
fn await_ready(
    fabric: &mut Tcp,
    view: ViewId,
    (own, members): (Rank, &[NodeId]),
    until: Instant,
    cancel: &AtomicBool,
) -> Result<(), TcpError> {
    loop {
        fabric.carry();
        let mut others = (0..).map(Rank).zip(members).filter(|(rank, _)| *rank != own);
        let Some((rank, peer)) = others.find(|(rank, _)| !fabric.ready(view, *rank)) else {
            return Ok(());
        };
        if cancel.load(Ordering::Relaxed) {
            return Err(MeshError::Cancelled.into());
        }
        if fabric.is_lost(view, rank) || Instant::now() >= until {
            return Err(TcpError::NotReady { peer: *peer });
        }
        fabric.sleep(LOOK_PAUSE);
    }
}
