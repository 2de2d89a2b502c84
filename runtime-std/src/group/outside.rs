//! How a process finds the others: where they are, who it says it is, and connections to those that it must call.
//!
//! Of two members that meet in a view, the one of higher rank calls the other. So no pair connects twice, a joiner calls
//! all old members, and of two joiners the second calls the first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::ids::NodeId;
use tramontane_mesh::{Address, Identity, Purpose, SharedKey, VisitError, Visited, visit};

use super::request::{Request, Requests};

/// How long one call may take.
const CALL: Duration = Duration::from_secs(5);

/// Between two calls of the same node.
const CALL_PAUSE: Duration = Duration::from_millis(10);

/// After so long a node is not called any more: it counts as lost by then.
const CALLS_MAX: Duration = Duration::from_secs(60);

/// What a process needs to call others.
pub(super) struct Outside {
    pub(super) identity: Identity,
    pub(super) addresses: BTreeMap<NodeId, Address>,
    pub(super) key: Option<SharedKey>,
    pub(super) requests: Requests,
    /// Becomes true when this member ends.
    pub(super) is_over: AtomicBool,
}

impl Outside {
    /// Calls a node once. Nothing if it has no address.
    pub(super) fn call(
        &self,
        node: NodeId,
        purpose: Purpose,
        cancel: &AtomicBool,
    ) -> Result<Visited, VisitError> {
        let address = self.addresses.get(&node).ok_or(VisitError::NotThere)?;
        visit(address, &self.identity, self.key.as_ref(), purpose, CALL, cancel)
    }

    /// Calls a node, again and again until it answers, in a thread of its own; the connection comes as a request.
    pub(super) fn connect(self: &Arc<Self>, node: NodeId) {
        let outside = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("tramontane-call".into()).spawn(move || {
            let started = Instant::now();
            while started.elapsed() < CALLS_MAX && !outside.is_over.load(Ordering::Relaxed) {
                match outside.call(node, Purpose::Peer, &outside.is_over) {
                    Ok(visited) if visited.node == node => {
                        outside.requests.ask(Request::Connected { node, talk: visited.talk });
                        return;
                    }
                    Ok(visited) => {
                        tracing::error!(%node, found = %visited.node, "another node is at its address");
                        return;
                    }
                    Err(error) => tracing::debug!(%node, %error, "not connected yet"),
                }
                std::thread::sleep(CALL_PAUSE);
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%node, %error, "cannot start a thread to connect");
        }
    }
}
