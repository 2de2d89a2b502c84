//! Informs a fabric of the processes that have been met, and receives its reports about itself.

use std::io;

use tramontane_control::Session;
use tramontane_core::fabric::HostFabric as _;
use tramontane_core::fabric::{ErrorKind, HostRegions};
use tramontane_core::ids::NodeId;
use tramontane_verbs::RdmaViews;

use super::AnyBell;
use crate::shared_memory::SharedMemory;
use crate::tcp::Tcp;

/// A fabric of this runtime, as seen by the code that meets its peers.
pub(crate) trait PeerFabric: HostRegions<Error = ErrorKind> + Send + 'static {
    /// Takes ownership of the connection to a node, if writes travel over one.
    fn connect(&mut self, node: NodeId, session: Session) -> io::Result<()>;

    /// Drops the connection to a node whose process no longer takes part. The node's next process
    /// will make a new connection.
    fn part_from(&mut self, node: NodeId);

    /// Takes ownership of the connection to a node's new process. The earlier process has ended.
    fn replace(&mut self, node: NodeId, session: Session) -> io::Result<()> {
        self.part_from(node);
        self.connect(node, session)
    }

    /// Returns whether a node can be reached without establishing a connection first.
    fn is_connected(&self, node: NodeId) -> bool;

    /// Returns a notice about this process's files in shared memory, if there is one.
    fn notice(&self) -> Option<String> {
        None
    }

    /// Returns the bell that other threads of this process ring.
    fn any_bell(&self) -> AnyBell;
}

impl PeerFabric for SharedMemory {
    fn connect(&mut self, _node: NodeId, _session: Session) -> io::Result<()> {
        Ok(())
    }

    fn part_from(&mut self, _node: NodeId) {}

    fn replace(&mut self, node: NodeId, _session: Session) -> io::Result<()> {
        self.meet(node);
        Ok(())
    }

    fn is_connected(&self, _node: NodeId) -> bool {
        true
    }

    fn notice(&self) -> Option<String> {
        self.residence().notice()
    }

    fn any_bell(&self) -> AnyBell {
        AnyBell::SharedMemory(self.local_bell())
    }
}

impl PeerFabric for Tcp {
    fn connect(&mut self, node: NodeId, session: Session) -> io::Result<()> {
        let connection = session.into_connection().ok_or(io::ErrorKind::NotConnected)?;
        self.add_peer(node, connection)
    }

    fn part_from(&mut self, node: NodeId) {
        Self::part_from(self, node);
    }

    fn is_connected(&self, node: NodeId) -> bool {
        self.has_peer(node)
    }

    fn any_bell(&self) -> AnyBell {
        AnyBell::Tcp(self.local_bell())
    }
}

impl PeerFabric for RdmaViews<Tcp> {
    fn connect(&mut self, node: NodeId, session: Session) -> io::Result<()> {
        self.side_channel_mut().connect(node, session)
    }

    fn part_from(&mut self, node: NodeId) {
        self.side_channel_mut().part_from(node);
    }

    fn is_connected(&self, node: NodeId) -> bool {
        self.side_channel().has_peer(node)
    }

    fn any_bell(&self) -> AnyBell {
        AnyBell::Tcp(self.local_bell())
    }
}
