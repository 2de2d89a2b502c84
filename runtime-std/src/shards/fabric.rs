//! What carries an overlay: a fabric with regions, rights to write to them, and many views.

use tramontane_control::Session;
use tramontane_core::fabric::{ErrorKind, HostFabric as _, HostRegions};
use tramontane_core::ids::NodeId;

use crate::fabric::AnyBell;
use crate::shared_memory::SharedMemory;
use crate::tcp::Tcp;

/// A fabric that shards go over.
pub(super) trait ShardFabric: HostRegions<Error = ErrorKind> + Send + 'static {
    /// A process that was met. Of its node's earlier process nothing comes any more.
    fn connect(&mut self, node: NodeId, session: Session) -> std::io::Result<()>;

    /// The bell that other threads of this process ring.
    fn any_bell(&self) -> AnyBell;
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

impl ShardFabric for SharedMemory {
    /// Members of a folder find each other there.
    fn connect(&mut self, node: NodeId, _session: Session) -> std::io::Result<()> {
        self.meet(node);
        Ok(())
    }

    fn any_bell(&self) -> AnyBell {
        AnyBell::SharedMemory(self.local_bell())
    }
}
