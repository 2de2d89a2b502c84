//! Joining over RDMA, and what a host needs of that fabric.

use std::sync::Arc;
use std::time::Duration;

use tramontane_core::fabric::{Fabric as _, ViewMemory};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::Layout;
use tramontane_mesh::{Address, Listener, MeshOptions};
use tramontane_verbs::devices::Wanted;
use tramontane_verbs::{Bell, Joined, Limits, Verbs};

use super::{JoinError, JoinOptions, NetworkMeeting};
use crate::host::{HostFabric, LocalBell};
use crate::joined::JoinedFabric;
use crate::member::{FIXED_VIEW, Memory};

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

/// Waits for all members, opens the fabric over the rows that it registered, and lends them.
pub(super) fn join(
    layout: &Layout<'_>,
    own: Rank,
    meeting: &VerbsMeeting,
    options: &JoinOptions<'_>,
) -> Result<(JoinedFabric, Memory), JoinError> {
    let members = layout.group().members;
    let row_bytes: Vec<usize> =
        (0..).map(Rank).take(members.len()).map(|rank| layout.row_bytes(rank)).collect();
    let addresses: Vec<Address> =
        meeting.network.addresses.iter().copied().map(Address::from).collect();
    let Joined { mut fabric, report } = tramontane_verbs::join(tramontane_verbs::JoinOptions {
        mesh: mesh(layout, own, members, (meeting, &addresses), options)?,
        device: meeting.device.clone(),
        limits: meeting.limits.clone(),
        row_bytes: &row_bytes,
        regions: &[],
        blocks: layout.channels() > 0,
    })?;
    crate::rdma::tell(&report);
    let rows = Arc::clone(fabric.rows());
    let (all, row) = (rows.rows(), rows.row());
    fabric.open(FIXED_VIEW, &ViewMemory { own, members, row, rows: &all })?;
    // SAFETY: the pages live as long as `rows`.
    let memory = unsafe { Memory::new(&all, row, rows.clone()) };
    Ok((JoinedFabric::Verbs(fabric), memory))
}

fn mesh<'m>(
    layout: &Layout<'_>,
    own: Rank,
    members: &'m [NodeId],
    (meeting, addresses): (&VerbsMeeting, &'m [Address]),
    options: &JoinOptions<'m>,
) -> Result<MeshOptions<'m>, JoinError> {
    let listener = meeting
        .network
        .listener()
        .and_then(|listener| listener.map(Listener::try_from).transpose());
    let listener = listener.map_err(|source| {
        let error = tramontane_mesh::MeshError::Io { action: "copy a descriptor", source };
        tramontane_verbs::JoinError::from(error)
    })?;
    Ok(MeshOptions {
        own,
        members,
        addresses,
        listener,
        incarnation: None,
        view: FIXED_VIEW,
        digest: layout.digest() ^ meeting.network.terms,
        key: meeting.network.key.clone(),
        allow_clear: meeting.network.allow_clear,
        time_limit: options.time_limit,
        cancel: options.cancel,
    })
}

impl LocalBell for Bell {
    #[inline]
    fn ring_if_asleep(&self) {
        Bell::ring_if_asleep(self);
    }
}

impl HostFabric for Verbs {
    type Bell = Bell;

    fn local_bell(&self) -> Bell {
        self.bell()
    }

    fn sleep(&mut self, timeout: Duration) -> bool {
        Verbs::sleep(self, timeout)
    }

    fn check_peers(&mut self) {
        Verbs::check_peers(self);
    }

    fn leave(&mut self) {
        Verbs::leave(self);
    }
}
