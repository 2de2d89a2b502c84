//! The fabrics of threads of this process, and how two of them meet.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_control::Connection;
use tramontane_core::fabric::{ErrorKind, HostFabric};
use tramontane_core::ids::NodeId;
use tramontane_runtime::shared_memory::{GroupName, Residence, Root, SharedMemory};
use tramontane_tcp::{Settings, Tcp};

use crate::BenchError;

/// How long a thread may wait for the group's folder.
const FOLDER_LIMIT: Duration = Duration::from_secs(10);

/// No start of a thread is ended early.
static NEVER: AtomicBool = AtomicBool::new(false);

/// What carries the writes of threads.
pub(super) trait Carrying {
    /// The fabric of one thread.
    type Fabric: HostFabric<Error = ErrorKind> + Send;

    /// The fabric of a node.
    fn fabric(&self, node: NodeId) -> Result<Self::Fabric, BenchError>;

    /// Two nodes can have views with each other from now on.
    fn connect(
        &self,
        one: (NodeId, &mut Self::Fabric),
        other: (NodeId, &mut Self::Fabric),
    ) -> Result<(), BenchError>;

    /// After a step: what was posted is to go out.
    fn carry(fabric: &mut Self::Fabric);
}

/// TCP over the loopback.
pub(super) struct TcpCarrying;

impl Carrying for TcpCarrying {
    type Fabric = Tcp;

    fn fabric(&self, node: NodeId) -> Result<Tcp, BenchError> {
        Ok(Tcp::new(node, Settings::default())?)
    }

    fn connect(
        &self,
        one: (NodeId, &mut Tcp),
        other: (NodeId, &mut Tcp),
    ) -> Result<(), BenchError> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let there = TcpStream::connect(listener.local_addr()?)?;
        let (here, _) = listener.accept()?;
        one.1.add_peer(other.0, Connection { stream: there, cipher: None })?;
        other.1.add_peer(one.0, Connection { stream: here, cipher: None })?;
        Ok(())
    }

    fn carry(fabric: &mut Tcp) {
        fabric.carry();
    }
}

/// Shared memory: each thread has a place of its own in a folder.
pub(super) struct SharedMemoryCarrying {
    root: Root,
    group: GroupName,
}

impl SharedMemoryCarrying {
    pub(super) fn new() -> Result<Self, BenchError> {
        Ok(Self { root: Root::from_env(), group: GroupName::unique("bench-baseline")? })
    }
}

impl Carrying for SharedMemoryCarrying {
    type Fabric = SharedMemory;

    fn fabric(&self, node: NodeId) -> Result<SharedMemory, BenchError> {
        let Self { root, group } = self;
        let residence = Residence::claim(root, group, node, 1, 1, FOLDER_LIMIT, &NEVER)?;
        Ok(SharedMemory::for_residence(&Arc::new(residence)))
    }

    /// Members of a folder find each other there.
    fn connect(
        &self,
        _one: (NodeId, &mut SharedMemory),
        _other: (NodeId, &mut SharedMemory),
    ) -> Result<(), BenchError> {
        Ok(())
    }

    fn carry(_fabric: &mut SharedMemory) {}
}
