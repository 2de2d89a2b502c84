//! What carries a group whose membership changes: a fabric, and where each view's memory comes
//! from.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use tramontane_control::{Address, Session};
use tramontane_core::fabric::{ErrorKind, ViewPlan};
use tramontane_core::fabric::{Fabric as _, HostFabric as _, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::Layout;

use crate::carrier::Carrier;
use crate::fabric::AnyFabric;
use crate::group::description::terms::Description;
use crate::member::Memory;
use crate::rdma::{DeviceOptions, NoFabric};
use crate::shared_memory::{Residence, SharedMemory};
use crate::tcp::Tcp;
use crate::{fabric, rdma, tcp};

/// Why a view has no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is no memory left.
    #[error(transparent)]
    None(#[from] fabric::MemoryError),
    /// The fabric refuses it.
    #[error("the fabric cannot open the view: {0}")]
    Fabric(#[from] ErrorKind),
}

/// The fabric of a member through all its views.
pub(crate) struct GroupFabric {
    pub(crate) fabric: AnyFabric,
}

impl GroupFabric {
    /// The fabric of a member that has not met any other yet. `address` is where it listens; over
    /// shared memory it has its `residence`.
    pub(crate) fn alone(
        description: &Description,
        own: NodeId,
        address: &Address,
        device: &DeviceOptions,
        residence: Option<Arc<Residence>>,
    ) -> Result<Self, NoFabric> {
        let fabric = match (description.fabric, &residence) {
            (Carrier::SharedMemory, Some(residence)) => {
                AnyFabric::SharedMemory(SharedMemory::for_residence(residence))
            }
            (Carrier::SharedMemory | Carrier::Tcp, _) => {
                AnyFabric::Tcp(Tcp::new(own, tcp::Settings::default())?)
            }
            (Carrier::Verbs, _) => {
                let device = device.clone().or(&description.rdma);
                let failure_timeout = Duration::from_millis(description.failure_timeout_ms);
                let site = rdma::open_site(&device, failure_timeout, address.resolved_ip())?;
                AnyFabric::Verbs(rdma::views_over(site, own)?)
            }
        };
        Ok(Self { fabric })
    }

    /// Makes fresh memory for a view, and opens it (VIE-11).
    pub(crate) fn open_view(
        &mut self,
        layout: &Layout<'_>,
        own: Rank,
        view: ViewId,
    ) -> Result<Memory, MemoryError> {
        let memory = self.fabric.rows(&ViewPlan::of_layout(view, own, layout))?;
        self.fabric.open(view, &memory.memory())?;
        Ok(memory)
    }

    /// Whether a node can be reached without a connection being made first.
    pub(crate) fn is_connected(&self, node: NodeId) -> bool {
        match &self.fabric {
            AnyFabric::Tcp(fabric) => fabric.has_peer(node),
            AnyFabric::Verbs(fabric) => fabric.side_channel().has_peer(node),
            _ => true,
        }
    }

    /// A node is out of all views that are open: its connection is that of a process which takes no
    /// part any more, and is replaced by one of the node's next process.
    pub(crate) fn part_from(&mut self, node: NodeId) {
        match &mut self.fabric {
            AnyFabric::Tcp(fabric) => fabric.part_from(node),
            AnyFabric::Verbs(fabric) => fabric.side_channel_mut().part_from(node),
            _ => {}
        }
    }

    /// What became of this member's files in shared memory: see [`Residence::notice`].
    pub(crate) fn notice(&self) -> Option<String> {
        match &self.fabric {
            AnyFabric::SharedMemory(fabric) => fabric.residence().notice(),
            _ => None,
        }
    }

    /// Sends to these nodes so many bytes a second at most, over TCP.
    pub(crate) fn limit_rates(&self, rates: &[(u32, NonZeroU64)]) -> std::io::Result<()> {
        if let AnyFabric::Tcp(fabric) = &self.fabric {
            for (node, rate) in rates {
                fabric.limit_rate(NodeId(*node), *rate)?;
            }
        }
        Ok(())
    }

    /// Takes over the connection to a node.
    pub(crate) fn connect(&mut self, node: NodeId, session: Session) {
        let Some(connection) = session.into_connection() else { return };
        let added = match &mut self.fabric {
            AnyFabric::Tcp(fabric) => fabric.add_peer(node, connection),
            AnyFabric::Verbs(fabric) => fabric.side_channel_mut().add_peer(node, connection),
            _ => return,
        };
        if let Err(error) = added {
            tracing::warn!(%node, %error, "a connection is not used");
        }
    }
}
