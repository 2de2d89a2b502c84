//! Groups that meet, control servers, and their clients.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tramontane_control::{
    Address, Client, ControlServer, Identity, Listener, Mesh, MeshError, MeshOptions,
    OpenSessionError, OpenedSession, Purpose, SharedKey, open_session,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};

pub static NEVER: AtomicBool = AtomicBool::new(false);

/// All nodes of the groups with a control server here.
pub const NODES: [NodeId; 3] = [NodeId(10), NodeId(11), NodeId(12)];

pub const LONG: Duration = Duration::from_secs(20);
pub const SHORT: Duration = Duration::from_millis(600);

/// The digest of all groups here.
pub const DIGEST: u64 = 42;

/// One member's part, to be changed before it is used.
#[derive(Clone)]
pub struct Part {
    pub own: Rank,
    pub members: Vec<NodeId>,
    pub addresses: Vec<Address>,
    pub view: ViewId,
    pub digest: u64,
    pub key: Option<SharedKey>,
    pub time_limit: Duration,
}

impl Part {
    pub fn join(&self, listener: Option<Listener>) -> Result<Mesh<'static>, MeshError> {
        self.join_as(listener, None)
    }

    pub fn join_as(
        &self,
        listener: Option<Listener>,
        incarnation: Option<u64>,
    ) -> Result<Mesh<'static>, MeshError> {
        Mesh::join(MeshOptions {
            own: self.own,
            // What a mesh borrows lives as long as the flag that ends it: here for ever.
            members: self.members.clone().leak(),
            addresses: self.addresses.clone().leak(),
            listener,
            incarnation,
            view: self.view,
            digest: self.digest,
            key: self.key.clone(),
            allow_clear: false,
            time_limit: self.time_limit,
            cancel: &NEVER,
        })
    }
}

/// A listener on this machine, over TCP.
pub fn listener() -> Listener {
    Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port")
}

/// Listeners over TCP, or over Unix sockets in a folder of their own.
pub fn listeners(count: u16, folder: Option<&tempfile::TempDir>) -> Vec<Listener> {
    let listener = |index| match folder {
        None => listener(),
        Some(folder) => {
            Listener::bind(&Address::Unix(folder.path().join(format!("{index}.socket"))))
                .expect("a socket")
        }
    };
    (0..count).map(listener).collect()
}

/// A group of so many, each with a socket that listens already.
pub fn group(members: u16, key: Option<SharedKey>) -> (Vec<Part>, Vec<Listener>) {
    group_at(listeners(members, None), key)
}

/// A group whose members listen so.
pub fn group_at(listeners: Vec<Listener>, key: Option<SharedKey>) -> (Vec<Part>, Vec<Listener>) {
    let members = u16::try_from(listeners.len()).expect("few");
    let addresses: Vec<Address> =
        listeners.iter().map(|listener| listener.address().clone()).collect();
    let ids: Vec<NodeId> = (0..members).map(|rank| NodeId(u32::from(rank) + 10)).collect();
    let part = |own| Part {
        own: Rank(own),
        members: ids.clone(),
        addresses: addresses.clone(),
        view: ViewId(1),
        digest: DIGEST,
        key: key.clone(),
        time_limit: LONG,
    };
    ((0..members).map(part).collect(), listeners)
}

pub fn key(byte: u8) -> Option<SharedKey> {
    Some(SharedKey::from_bytes([byte; 32]))
}

/// Lets all of these join at once.
pub fn join_all(
    parts: Vec<Part>,
    listeners: Vec<Listener>,
) -> Vec<Result<Mesh<'static>, MeshError>> {
    let joining: Vec<_> = parts
        .into_iter()
        .zip(listeners)
        .map(|(part, listener)| std::thread::spawn(move || part.join(Some(listener))))
        .collect();
    joining.into_iter().map(|thread| thread.join().expect("no panic")).collect()
}

pub fn joined(members: u16, key: Option<SharedKey>) -> Vec<Mesh<'static>> {
    let (parts, listeners) = group(members, key);
    join_all(parts, listeners).into_iter().map(|mesh| mesh.expect("they meet")).collect()
}

pub fn error(mesh: Result<Mesh<'static>, MeshError>) -> MeshError {
    mesh.expect_err("they must not meet")
}

/// The identity of a node of these groups.
pub fn identity(node: u32) -> Identity {
    Identity { node: NodeId(node), incarnation: u64::from(node) * 1000, digest: DIGEST }
}

/// An operator.
pub fn operator() -> Identity {
    Identity { node: Identity::NO_MEMBER, ..identity(7) }
}

/// A control server of node 10 that hands each client to the test.
pub fn server(listener: Listener, key: Option<SharedKey>) -> (ControlServer, Receiver<Client>) {
    let (sender, receiver) = channel();
    let server = ControlServer::open(listener, identity(10), NODES, key, move |client| {
        // A test that ended need not know.
        let _ = sender.send(client);
    });
    (server.expect("a thread"), receiver)
}

/// Opens a session with a control server, with time enough.
pub fn go(
    address: &Address,
    identity: Identity,
    key: Option<&SharedKey>,
    purpose: Purpose,
) -> Result<OpenedSession, OpenSessionError> {
    open_session(address, &identity, key, purpose, LONG, &NEVER)
}
