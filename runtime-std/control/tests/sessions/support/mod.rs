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

/// All nodes of the groups that have a control server in these tests.
pub const NODES: [NodeId; 3] = [NodeId(10), NodeId(11), NodeId(12)];

pub const LONG: Duration = Duration::from_secs(20);
pub const SHORT: Duration = Duration::from_millis(600);

/// The digest of all groups in these tests.
pub const DIGEST: u64 = 42;

/// One member's settings, which a test can change before using them.
#[derive(Clone)]
pub struct MemberSettings {
    pub own: Rank,
    pub members: Vec<NodeId>,
    pub addresses: Vec<Address>,
    pub view: ViewId,
    pub digest: u64,
    pub key: Option<SharedKey>,
    pub time_limit: Duration,
}

impl MemberSettings {
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
            // A mesh borrows these for as long as the flag that cancels it, which is static in
            // these tests.
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

/// Returns a TCP listener on this machine.
pub fn listener() -> Listener {
    Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port")
}

/// Returns TCP listeners, or listeners on Unix sockets in a folder.
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

/// Returns a group of `members` members, each with a socket that already listens.
pub fn group(members: u16, key: Option<SharedKey>) -> (Vec<MemberSettings>, Vec<Listener>) {
    group_at(listeners(members, None), key)
}

/// Returns a group whose members use these listeners.
pub fn group_at(
    listeners: Vec<Listener>,
    key: Option<SharedKey>,
) -> (Vec<MemberSettings>, Vec<Listener>) {
    let members = u16::try_from(listeners.len()).expect("few");
    let addresses: Vec<Address> =
        listeners.iter().map(|listener| listener.address().clone()).collect();
    let ids: Vec<NodeId> = (0..members).map(|rank| NodeId(u32::from(rank) + 10)).collect();
    let part = |own| MemberSettings {
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

/// Lets all these members join at the same time.
pub fn join_all(
    parts: Vec<MemberSettings>,
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

/// Returns the identity of a node of these groups.
pub fn identity(node: u32) -> Identity {
    Identity { node: NodeId(node), incarnation: u64::from(node) * 1000, digest: DIGEST }
}

/// Returns the identity of an operator.
pub fn operator() -> Identity {
    Identity { node: Identity::NO_MEMBER, ..identity(7) }
}

/// Opens a control server of node 10 that passes each client to the test.
pub fn server(listener: Listener, key: Option<SharedKey>) -> (ControlServer, Receiver<Client>) {
    let (sender, receiver) = channel();
    let server = ControlServer::open(listener, identity(10), NODES, key, move |client| {
        // A test that has ended does not need the client.
        let _ = sender.send(client);
    });
    (server.expect("a thread"), receiver)
}

/// Opens a session with a control server, with ample time.
pub fn go(
    address: &Address,
    identity: Identity,
    key: Option<&SharedKey>,
    purpose: Purpose,
) -> Result<OpenedSession, OpenSessionError> {
    open_session(address, &identity, key, purpose, LONG, &NEVER)
}
