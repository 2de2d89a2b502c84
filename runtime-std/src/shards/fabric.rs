//! What carries an overlay: a fabric with regions, rights to write to them, and many views.

use std::net::IpAddr;
use std::time::Duration;

use tramontane_control::Session;
use tramontane_core::fabric::{ErrorKind, HostFabric as _, HostRegions};
use tramontane_core::ids::NodeId;
use tramontane_verbs::{RdmaViews, Site};

use super::description::Description;
use crate::fabric::AnyBell;
use crate::rdma::{self, NoFabric};
use crate::shared_memory::SharedMemory;
use crate::tcp::Tcp;

/// A fabric that shards go over.
pub(super) trait ShardFabric: HostRegions<Error = ErrorKind> + Send + 'static {
    /// A process that was met. Of its node's earlier process nothing comes any more.
    fn connect(&mut self, node: NodeId, session: Session) -> std::io::Result<()>;

    /// The bell that other threads of this process ring.
    fn any_bell(&self) -> AnyBell;

    /// What became of this process's files in shared memory.
    fn notice(&self) -> Option<String> {
        None
    }
}

impl ShardFabric for Tcp {
    fn connect(&mut self, node: NodeId, session: Session) -> std::io::Result<()> {
        let Some(connection) = session.into_connection() else {
            return Err(std::io::ErrorKind::NotConnected.into());
        };
        self.part_from(node);
        self.add_peer(node, connection)
    }

    fn any_bell(&self) -> AnyBell {
        AnyBell::Tcp(self.local_bell())
    }
}

/// The side channel makes the connections of each view that is opened to that process.
impl ShardFabric for RdmaViews<Tcp> {
    fn connect(&mut self, node: NodeId, session: Session) -> std::io::Result<()> {
        self.side_channel_mut().connect(node, session)
    }

    fn any_bell(&self) -> AnyBell {
        self.side_channel().any_bell()
    }
}

impl ShardFabric for SharedMemory {
    /// Members of a folder find each other there.
    fn connect(&mut self, node: NodeId, _session: Session) -> std::io::Result<()> {
        self.meet(node);
        Ok(())
    }

    fn notice(&self) -> Option<String> {
        self.residence().notice()
    }

    fn any_bell(&self) -> AnyBell {
        AnyBell::SharedMemory(self.local_bell())
    }
}

/// The device of shards that go over RDMA. That it keeps what they need is found out at once,
/// before others wait for this process. `meeting` is its address on the way to them.
pub(super) fn open_device(
    description: &Description,
    meeting: Option<IpAddr>,
) -> Result<Site, NoFabric> {
    let failure_timeout = Duration::from_millis(description.failure_timeout_ms);
    let site = rdma::open_site(&description.rdma, failure_timeout, meeting)?;
    site.check_regions()?;
    Ok(site)
}
