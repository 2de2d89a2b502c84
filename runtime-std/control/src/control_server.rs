//! The control server of a running process. It listens as long as the process wants, greets each
//! client, and passes the admitted ones to a callback.

use std::collections::BTreeSet;
use std::io::Result;
use std::sync::Arc;
use std::thread::JoinHandle;

use tramontane_core::ids::NodeId;

use super::address::Address;
use super::connection_limit::{ConnectionLimit, GREETING_MAX, Permit, accept_connections};
use super::deadline::Deadline;
use super::descriptors::{is_kept, slots};
use super::greeting::{Terms, accept_greeting};
use super::hello::{Hello, Purpose};
use super::identity::Identity;
use super::key::SharedKey;
use super::listener::Listener;
use super::refusal::Refusal;
use super::session::Session;
use super::stream::Stream;

/// The maximum number of simultaneous greetings at a control server, each lasting at most five
/// seconds. One more greeting closes the oldest one of the host that has the most of them. The
/// limit is lower if the process may open fewer than 512 descriptors.
pub const GREETINGS_MAX: usize = 64;

/// The maximum number of clients that a control server has passed to its callback and whose calls
/// have not returned. One more client is refused with [`Refusal::Busy`].
pub const CLIENTS_MAX: usize = 128;

/// The number of these slots reserved for [`Purpose::Peer`], so that long sessions of operators and
/// joining nodes do not prevent members from connecting.
pub const PEER_SLOTS: usize = 32;

/// An admitted client, which has the key, if there is one, and the group's digest.
#[derive(Debug)]
pub struct Client {
    /// The purpose of the connection, which is never [`Purpose::Meet`].
    pub purpose: Purpose,
    /// The node that the client claims to be. It is not this node, unless the client is an
    /// operator.
    pub node: NodeId,
    /// The incarnation of the client's process.
    pub incarnation: u64,
    /// The session with the client. While the callback runs, calls of the session end when the
    /// server is dropped. After the callback has returned, the session continues without the
    /// server.
    pub session: Session,
}

/// A server that runs until it is dropped. Dropping it waits for the running callbacks, so a
/// callback must not drop the server. Callbacks that only use their session end within about 50 ms.
#[derive(Debug)]
pub struct ControlServer {
    address: Address,
    limit: Arc<ConnectionLimit>,
    thread: Option<JoinHandle<()>>,
}

impl ControlServer {
    /// Starts the server. `client` is called for each admitted client on a separate thread; it
    /// decides how to serve the client, and may keep the session. Only `nodes` are admitted as
    /// peers or joining nodes; any other id is refused before any state is kept for it. Without a
    /// key all traffic is unencrypted, so the caller must ensure that the address [is
    /// local](Address::is_local) or that the network is trusted.
    ///
    /// # Errors
    /// Fails with the system's error if no thread is available, or the socket cannot be used in
    /// this way.
    pub fn open(
        listener: Listener,
        identity: Identity,
        nodes: impl IntoIterator<Item = NodeId>,
        key: Option<SharedKey>,
        client: impl Fn(Client) + Send + Sync + 'static,
    ) -> Result<Self> {
        listener.set_nonblocking()?;
        let address = listener.address().clone();
        let limit = Arc::new(ConnectionLimit::new(slots(GREETINGS_MAX), CLIENTS_MAX));
        let (acceptor, own_gate) = (
            Acceptor { identity, nodes: nodes.into_iter().collect(), key, client },
            Arc::clone(&limit),
        );
        let stand = move || {
            let greet =
                |stream, address, permit: &Permit<'_>| acceptor.greet(stream, &address, permit);
            std::thread::scope(|scope| accept_connections(scope, &listener, &own_gate, &greet));
        };
        let thread = std::thread::Builder::new().name("tramontane-control".into()).spawn(stand)?;
        Ok(Self { address, limit, thread: Some(thread) })
    }

    /// Returns the address at which the server listens.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.limit.close();
        if let Some(thread) = self.thread.take() {
            // A panic of a callback has already been reported.
            let _ = thread.join();
        }
    }
}

/// The state shared by the server's threads.
struct Acceptor<V> {
    identity: Identity,
    /// The nodes that may be peers, or join.
    nodes: BTreeSet<NodeId>,
    key: Option<SharedKey>,
    client: V,
}

impl<V: Fn(Client) + Sync> Acceptor<V> {
    fn greet(&self, stream: Stream, address: &Address, permit: &Permit<'_>) {
        let deadline = Deadline::new(GREETING_MAX, permit.stop());
        let clients_digest = self.identity.digest;
        let terms = Terms {
            hello: self.identity.hello(Purpose::Ask),
            clients_digest,
            key: self.key.as_ref(),
        };
        let is_kept = is_kept(&stream);
        match accept_greeting(terms, stream, deadline, |hello| self.judge(hello, permit, is_kept)) {
            Ok(Ok((Hello { purpose, node, incarnation, .. }, channel))) => {
                let session = Session::new(channel, Some(Arc::clone(permit.stop())));
                (self.client)(Client { purpose, node, incarnation, session });
            }
            Ok(Err((refusal, _))) => {
                tracing::info!(%address, %refusal, "a client was refused")
            }
            Err(error) => {
                tracing::debug!(%address, %error, "a client disconnected before it was admitted")
            }
        }
    }

    /// Decides whether the client is admitted. `is_kept` is true if its connection has a descriptor
    /// that is reserved, so that external clients may not use it.
    fn judge(
        &self,
        hello: &Hello,
        permit: &Permit<'_>,
        is_kept: bool,
    ) -> std::result::Result<(), Refusal> {
        // This comes first, because a member that meets has a different digest, and learns from its
        // next session whether anything else differs.
        if hello.purpose == Purpose::Meet {
            return Err(Refusal::Running);
        }
        if hello.purpose != Purpose::Client && hello.digest != self.identity.digest {
            return Err(Refusal::Digest);
        }
        match hello.purpose {
            Purpose::Peer | Purpose::Join | Purpose::Restart
                if hello.node == self.identity.node =>
            {
                return Err(Refusal::DuplicateId);
            }
            Purpose::Peer | Purpose::Join | Purpose::Restart
                if !self.nodes.contains(&hello.node) =>
            {
                return Err(Refusal::NotAMember);
            }
            Purpose::Client if is_kept => {
                permit.shortage().refuse("clients already use their share of the descriptors");
                return Err(Refusal::Busy);
            }
            Purpose::Meet
            | Purpose::Peer
            | Purpose::Join
            | Purpose::Ask
            | Purpose::Client
            | Purpose::Restart => {}
        }
        let kept = if hello.purpose == Purpose::Peer { 0 } else { PEER_SLOTS };
        if permit.become_known(kept) { Ok(()) } else { Err(Refusal::Busy) }
    }
}
