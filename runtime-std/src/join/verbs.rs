//! Joining over RDMA: the members meet over TCP, which stays beside it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tramontane_control::MeshError;
use tramontane_core::fabric::{Fabric as _, HostFabric as _, ViewPlan, ViewRows as _};
use tramontane_core::ids::Rank;
use tramontane_core::layout::Layout;
use tramontane_verbs::devices::Wanted;
use tramontane_verbs::{Limits, RdmaViews, Site};

use super::{JoinError, JoinOptions, NetworkMeeting};
use crate::joined::{JoinedFabric, MemoryError};
use crate::member::{FIXED_VIEW, Memory};
use crate::tcp::{self, Tcp, TcpError, TcpOptions};

/// Between two looks at peers that are not ready.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// Where members meet over TCP, and how they go on over RDMA.
#[derive(Clone, Debug, Default)]
pub struct VerbsMeeting {
    /// Where they meet.
    pub network: NetworkMeeting,
    /// Which device, if not the first that works.
    pub device: Wanted,
    /// How the fabric behaves.
    pub limits: Limits,
}

/// Waits for all members, and opens the fabric over rows that the device may write to.
pub(super) fn join(
    layout: &Layout<'_>,
    own: Rank,
    meeting: &VerbsMeeting,
    options: &JoinOptions<'_>,
) -> Result<(JoinedFabric, Memory), JoinError> {
    let until = Instant::now() + options.time_limit;
    let network = &meeting.network;
    let address = network.addresses.get(own.index()).map(std::net::SocketAddr::ip);
    let site = Site::open(&meeting.device, &meeting.limits, address)?;
    crate::rdma::tell(&site.report());
    let beside = tcp::connect(
        layout,
        own,
        TcpOptions {
            addresses: &network.addresses,
            terms: network.terms,
            listener: network.listener().map_err(TcpError::from)?,
            view: FIXED_VIEW,
            key: network.key.clone(),
            allow_clear: network.allow_clear,
            time_limit: options.time_limit,
            cancel: options.cancel,
            settings: tcp::Settings::default(),
        },
    )?;
    let mut fabric = RdmaViews::new(site, beside).map_err(TcpError::from)?;
    let rows = fabric.rows(&ViewPlan::of_layout(FIXED_VIEW, own, layout));
    let rows = rows.map_err(MemoryError::from)?;
    fabric.open(FIXED_VIEW, &rows.memory())?;
    await_ready(&mut fabric, layout, own, until, options)?;
    Ok((JoinedFabric::Verbs(fabric), Memory::new(rows)))
}

/// Waits until a write to every peer is answered. Events stay for the first poll.
fn await_ready(
    fabric: &mut RdmaViews<Tcp>,
    layout: &Layout<'_>,
    own: Rank,
    until: Instant,
    options: &JoinOptions<'_>,
) -> Result<(), JoinError> {
    loop {
        fabric.carry();
        let mut others = (0..).map(Rank).take(layout.members()).filter(|rank| *rank != own);
        let Some(peer) = others.find(|rank| !fabric.ready(FIXED_VIEW, *rank)) else {
            return Ok(());
        };
        if options.cancel.load(Ordering::Relaxed) {
            return Err(TcpError::from(MeshError::Cancelled).into());
        }
        if fabric.loss_of(FIXED_VIEW, peer).is_some() || Instant::now() >= until {
            return Err(fabric.no_answer(FIXED_VIEW, peer).into());
        }
        std::thread::sleep(LOOK_PAUSE);
    }
}
