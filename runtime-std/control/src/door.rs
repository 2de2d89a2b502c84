//! The door of a running process: it listens as long as the process likes, greets whoever comes,
//! and hands over those who may come in.

use std::collections::BTreeSet;
use std::io::Result;
use std::sync::Arc;
use std::thread::JoinHandle;

use tramontane_core::ids::NodeId;

use super::address::Address;
use super::gate::{GREETING_MAX, Gate, Taken, welcome};
use super::greeting::{Terms, hear};
use super::hello::{Hello, Purpose};
use super::identity::Identity;
use super::key::SharedKey;
use super::listener::Listener;
use super::patience::Patience;
use super::refusal::Refusal;
use super::stream::Stream;
use super::talk::Talk;

/// Greetings at once at a door, each at most five seconds. One more, and the oldest of the host
/// with the most of them is closed.
pub const GREETINGS_MAX: usize = 64;

/// Visitors at once whom a door has handed over, and whose callback has not returned. One more is
/// refused as [`Refusal::Busy`].
pub const VISITORS_MAX: usize = 128;

/// So many of those places are for [`Purpose::Peer`] alone: whoever asks or joins, and stays, must
/// not keep members apart.
pub const PEER_PLACES: usize = 32;

/// Somebody who came through the door: it has the key, if there is one, and the group's digest.
#[derive(Debug)]
pub struct Visitor {
    /// What it came for; never [`Purpose::Meet`].
    pub purpose: Purpose,
    /// Who it says it is: not this node, unless it asks.
    pub node: NodeId,
    /// The life of its process.
    pub incarnation: u64,
    /// What to talk on. While the callback runs, its calls end when the door is dropped; afterwards
    /// the talk goes on without the door.
    pub talk: Talk,
}

/// A door that stands open until it is dropped. That waits for the callbacks that run, so a
/// callback must not drop it; those that only talk end within about 50 ms.
#[derive(Debug)]
pub struct Door {
    address: Address,
    gate: Arc<Gate>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// Opens the door. `visitor` is called for each who may come in, on a thread of its own; it
    /// decides what becomes of the visitor, and may keep the talk. Only `nodes` come as a peer or
    /// to join: an id that is not among them is refused before anything is kept for it. Without a
    /// key all is said in clear, so the caller sees to it that the address [is
    /// local](Address::is_local), or the network one that it trusts.
    ///
    /// # Errors
    /// What the system says: no thread, or not such a socket.
    pub fn open(
        listener: Listener,
        identity: Identity,
        nodes: impl IntoIterator<Item = NodeId>,
        key: Option<SharedKey>,
        visitor: impl Fn(Visitor) + Send + Sync + 'static,
    ) -> Result<Self> {
        listener.set_nonblocking()?;
        let address = listener.address().clone();
        let gate = Arc::new(Gate::new(GREETINGS_MAX, VISITORS_MAX));
        let (hall, own_gate) = (
            Hall { identity, nodes: nodes.into_iter().collect(), key, visitor },
            Arc::clone(&gate),
        );
        let stand = move || {
            let greet = |stream, address, taken: &Taken<'_>| hall.greet(stream, &address, taken);
            std::thread::scope(|scope| welcome(scope, &listener, &own_gate, &greet));
        };
        let thread = std::thread::Builder::new().name("tramontane-door".into()).spawn(stand)?;
        Ok(Self { address, gate, thread: Some(thread) })
    }

    /// Where it is.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.gate.close();
        if let Some(thread) = self.thread.take() {
            // A callback that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

/// What is behind the door.
struct Hall<V> {
    identity: Identity,
    /// Who may be a peer, or join.
    nodes: BTreeSet<NodeId>,
    key: Option<SharedKey>,
    visitor: V,
}

impl<V: Fn(Visitor) + Sync> Hall<V> {
    fn greet(&self, stream: Stream, address: &Address, taken: &Taken<'_>) {
        let patience = Patience::new(GREETING_MAX, taken.stop());
        let visitors_digest = self.identity.digest;
        let terms = Terms {
            hello: self.identity.hello(Purpose::Ask),
            visitors_digest,
            key: self.key.as_ref(),
        };
        match hear(terms, stream, patience, |hello| self.judge(hello, taken)) {
            Ok(Ok((Hello { purpose, node, incarnation, .. }, channel))) => {
                let talk = Talk::new(channel, Some(Arc::clone(taken.stop())));
                (self.visitor)(Visitor { purpose, node, incarnation, talk });
            }
            Ok(Err((refusal, _))) => {
                tracing::info!(%address, %refusal, "somebody came and was sent away")
            }
            Err(error) => tracing::debug!(%address, %error, "somebody came and went"),
        }
    }

    fn judge(&self, hello: &Hello, taken: &Taken<'_>) -> std::result::Result<(), Refusal> {
        // Before all else: whoever meets goes by another digest, and learns with the next visit if
        // the rest differs too.
        if hello.purpose == Purpose::Meet {
            return Err(Refusal::Running);
        }
        if hello.digest != self.identity.digest {
            return Err(Refusal::Digest);
        }
        match hello.purpose {
            Purpose::Peer | Purpose::Join if hello.node == self.identity.node => {
                return Err(Refusal::DuplicateId);
            }
            Purpose::Peer | Purpose::Join if !self.nodes.contains(&hello.node) => {
                return Err(Refusal::NotAMember);
            }
            Purpose::Meet | Purpose::Peer | Purpose::Join | Purpose::Ask => {}
        }
        let kept = if hello.purpose == Purpose::Peer { 0 } else { PEER_PLACES };
        if taken.become_known(kept) { Ok(()) } else { Err(Refusal::Busy) }
    }
}
