//! Informs a fabric of the processes that have been met, and receives its reports about itself.

use std::io;

use tramontane_control::Session;
use tramontane_core::fabric::HostFabric as _;
use tramontane_core::fabric::{ErrorKind, HostRegions};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_verbs::RdmaViews;

use super::AnyBell;
use crate::shared_memory::SharedMemory;
use crate::tcp::Tcp;

/// A fabric of this runtime, as seen by the code that meets its peers.
pub(crate) trait PeerFabric: HostRegions<Error = ErrorKind> + Send + 'static {
    /// Takes ownership of the connection to a node. Writes travel over it, or its end shows that
    /// the node's process has ended.
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

    /// Returns whether a peer has ended a view that is open here, although its process continues.
    fn has_ended(&self, view: ViewId, peer: Rank) -> bool;

    /// Returns a notice about this process's files in shared memory, if there is one.
    fn notice(&self) -> Option<String> {
        None
    }

    /// Returns the bell that other threads of this process ring.
    fn any_bell(&self) -> AnyBell;
}

impl PeerFabric for SharedMemory {
    fn connect(&mut self, node: NodeId, session: Session) -> io::Result<()> {
        let socket = session.into_socket().ok_or(io::ErrorKind::NotConnected)?;
        self.keep_connection(node, socket);
        Ok(())
    }

    fn part_from(&mut self, _node: NodeId) {}

    fn replace(&mut self, node: NodeId, session: Session) -> io::Result<()> {
        self.meet(node);
        self.connect(node, session)
    }

    fn is_connected(&self, _node: NodeId) -> bool {
        true
    }

    fn has_ended(&self, view: ViewId, peer: Rank) -> bool {
        Self::has_ended(self, view, peer)
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

    fn has_ended(&self, view: ViewId, peer: Rank) -> bool {
        Self::has_ended(self, view, peer)
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

    fn has_ended(&self, view: ViewId, peer: Rank) -> bool {
        self.side_channel().has_ended(view, peer)
    }

    fn any_bell(&self) -> AnyBell {
        AnyBell::Tcp(self.local_bell())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use tramontane_control::{Address, Mesh, MeshOptions};
    use tramontane_core::fabric::{Event, Fabric as _, LossCause, ViewPlan, ViewRows as _};

    use super::*;
    use crate::shared_memory::{GroupName, Residence, Root};

    const LONG: Duration = Duration::from_secs(60);
    const MEMBERS: [NodeId; 2] = [NodeId(1), NodeId(2)];
    const VIEW: ViewId = ViewId(1);

    static NEVER: AtomicBool = AtomicBool::new(false);

    /// Returns the session with the other member, after both have met.
    fn meet(own: Rank, addresses: &[Address]) -> Session {
        let options = MeshOptions {
            own,
            members: &MEMBERS,
            addresses,
            listener: None,
            incarnation: None,
            view: VIEW,
            digest: 1,
            key: None,
            allow_clear: false,
            time_limit: LONG,
            cancel: &NEVER,
        };
        let sessions = Mesh::join(options).expect("they meet").into_sessions();
        sessions.into_iter().flatten().next().expect("one peer")
    }

    /// Hands over the connection to a process that has been met.
    type HandOver = fn(&mut SharedMemory, NodeId, Session) -> io::Result<()>;

    #[test]
    fn killed_process_is_lost_before_it_is_found() {
        is_lost_before_it_is_found(PeerFabric::connect);
        is_lost_before_it_is_found(PeerFabric::replace);
    }

    /// The other process is killed before this one has opened its file.
    fn is_lost_before_it_is_found(hand_over: HandOver) {
        let place = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let (root, group) = (Root::under(place.path()), GroupName::new("met").expect("a name"));
        let addresses = MEMBERS.map(|node| Address::Unix(place.path().join(node.to_string())));
        let (session, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| meet(Rank(1), &addresses));
            (meet(Rank(0), &addresses), other.join().expect("no panic"))
        });
        let claimed = Residence::claim(&root, &group, MEMBERS[0], 1, 1, LONG, &NEVER);
        let mut fabric = SharedMemory::for_residence(&Arc::new(claimed.expect("its place")));
        hand_over(&mut fabric, MEMBERS[1], session).expect("an open session");
        let plan = ViewPlan::with_sizes(VIEW, Rank(0), &MEMBERS, &[4096, 4096], 1);
        let memory = fabric.rows(&plan).expect("memory");
        fabric.open(VIEW, &memory.memory()).expect("it opens");
        assert!(!fabric.check_peers());
        drop(other);
        assert!(fabric.check_peers());
        let lost = Event::PeerLost { view: VIEW, peer: Rank(1), cause: LossCause::Exited };
        assert_eq!(fabric.poll(), Some(lost));
    }
}
