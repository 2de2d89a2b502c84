//! Connects a process to the other processes: it knows their addresses and its own identity, and
//! calls those that it must call.
//!
//! When two members meet in a view, the one of higher rank calls the other. So no pair connects
//! twice: a joining node calls all old members, and of two joining nodes the second calls the
//! first.
//!
//! A call is meant for one process: the node's process in the view in which the caller joined. The
//! call names that view ([`PeerRequest`]), and a different process of the node, which joined in a
//! later view, rejects the call. The caller stops calling once the node has left the view.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_control::{
    Address, Identity, OpenSessionError, OpenedSession, Purpose, Session, SessionError, SharedKey,
    open_session,
};
use tramontane_core::ids::{NodeId, ViewId};

use crate::group::engine::request::{Call, Request, Requests};
use crate::session_messages::{receive_message, send_message};

/// Time limit for one call.
const CALL: Duration = Duration::from_secs(5);

/// Time limit for a member's answer to a node that checks whether it can reach the member.
const REACH: Duration = Duration::from_secs(3);

/// The interval between two calls to the same node.
const CALL_PAUSE: Duration = Duration::from_millis(10);

/// The maximum time for which a node is called. After that, the node counts as lost.
const CALLS_MAX: Duration = Duration::from_secs(60);

/// The maximum length of a call's message, in bytes.
const WORD_MAX: u64 = 64;

/// Everything that a process needs to call the others.
pub(crate) struct PeerConnector {
    pub(crate) identity: Identity,
    pub(crate) addresses: BTreeMap<NodeId, Address>,
    pub(crate) key: Option<SharedKey>,
    pub(crate) requests: Requests,
    pub(crate) calls: Calls,
}

/// The caller's messages: first the process that it is calling, and then the confirmation that it
/// keeps the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PeerRequest {
    /// The process that is a member of this view, in which the caller joined.
    Member { view: u64 },
    /// The caller keeps this connection for all further traffic with the peer.
    Kept,
}

/// The answer to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PeerReply {
    /// The answering process is the one that the caller means.
    Member,
    /// The node is now a different process.
    Other,
}

/// The calls that a process makes, and the views in which the other members joined.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<KnownProcesses>);

#[derive(Debug, Default)]
struct KnownProcesses {
    is_over: bool,
    /// The first view of this process.
    first: Option<ViewId>,
    /// The view in which each current member joined, if this process was a member then.
    came: BTreeMap<NodeId, ViewId>,
    /// Calls in flight, each with the flag that ends it.
    under_way: Vec<(NodeId, Arc<AtomicBool>)>,
}

impl Calls {
    fn ledger(&self) -> MutexGuard<'_, KnownProcesses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call to a node, and returns the flag that ends the call. Returns `None` if this
    /// process has stopped calling.
    fn begin(&self, node: NodeId) -> Option<Arc<AtomicBool>> {
        let mut ledger = self.ledger();
        if ledger.is_over {
            return None;
        }
        let is_ended = Arc::new(AtomicBool::new(false));
        ledger.under_way.push((node, Arc::clone(&is_ended)));
        Some(is_ended)
    }

    /// Returns whether a call is meant for this process, that is, whether this process was a member
    /// when the caller joined.
    pub(crate) fn is_meant(&self, view: ViewId) -> bool {
        self.ledger().first.is_some_and(|first| first <= view)
    }

    /// Returns whether a node that joined in this view is, or may become, the current member with
    /// that id.
    pub(crate) fn is_expected(&self, node: NodeId, view: ViewId, present: ViewId) -> bool {
        view > present || self.ledger().came.get(&node) == Some(&view)
    }

    fn meets(&self, view: ViewId, joined: &[NodeId]) {
        let mut ledger = self.ledger();
        ledger.first.get_or_insert(view);
        ledger.came.extend(joined.iter().map(|node| (*node, view)));
    }

    fn forget(&self, gone: &[NodeId]) {
        let mut ledger = self.ledger();
        ledger.came.retain(|node, _| !gone.contains(node));
        ledger.under_way.retain(|(node, is_ended)| {
            let is_gone = gone.contains(node);
            if is_gone {
                is_ended.store(true, Ordering::Relaxed);
            }
            !is_gone && Arc::strong_count(is_ended) > 1
        });
    }

    fn end(&self) {
        let mut ledger = self.ledger();
        ledger.is_over = true;
        ledger
            .under_way
            .drain(..)
            .for_each(|(_, is_ended)| is_ended.store(true, Ordering::Relaxed));
    }
}

impl PeerConnector {
    /// Calls a node once. Fails if the node has no address.
    pub(crate) fn call(
        &self,
        node: NodeId,
        purpose: Purpose,
        cancel: &AtomicBool,
    ) -> Result<OpenedSession, OpenSessionError> {
        let address = self.addresses.get(&node).ok_or(OpenSessionError::NotThere)?;
        open_session(address, &self.identity, self.key.as_ref(), purpose, CALL, cancel)
    }

    /// Returns the given members whose control servers do not answer at all. All are asked at once.
    /// Members on the same machine are skipped, because there is no link that could break.
    pub(crate) fn unreached(&self, members: &[NodeId], cancel: &AtomicBool) -> Vec<NodeId> {
        let ask = |address: &Address| {
            let (identity, key) = (&self.identity, self.key.as_ref());
            open_session(address, identity, key, Purpose::Ask, REACH, cancel)
        };
        let is_missing = |answer| {
            use OpenSessionError as E;
            matches!(answer, Ok(Err(E::NotThere | E::TimeUp | E::Io(_))))
        };
        std::thread::scope(|scope| {
            let asked: Vec<_> = members
                .iter()
                .filter(|node| **node != self.identity.node)
                .filter_map(|node| {
                    let address = self
                        .addresses
                        .get(node)
                        .filter(|address| matches!(address, Address::Tcp(_)));
                    address.map(|address| (*node, scope.spawn(move || ask(address))))
                })
                .collect();
            let missing = asked.into_iter().filter_map(|(node, answer)| {
                is_missing(answer.join().map(|opened| opened.map(drop))).then_some(node)
            });
            missing.collect()
        })
    }

    /// Records that a view begins, in which these nodes joined.
    pub(crate) fn meets(&self, view: ViewId, joined: &[NodeId]) {
        self.calls.meets(view, joined);
    }

    /// Forgets nodes that have left the view: calls to them end, and the results are discarded.
    pub(crate) fn forget(&self, gone: &[NodeId]) {
        self.calls.forget(gone);
    }

    /// Ends all calls because this member is stopping.
    pub(crate) fn end(&self) {
        self.calls.end();
    }

    /// Calls, in a separate thread, the process that runs a node in a view, until it answers. The
    /// view must be the one in which this member joined. The connection arrives as a request.
    pub(crate) fn connect(self: &Arc<Self>, node: NodeId, view: ViewId) {
        let Some(is_ended) = self.calls.begin(node) else { return };
        let connector = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("tramontane-call".into()).spawn(move || {
            let started = Instant::now();
            while started.elapsed() < CALLS_MAX && !is_ended.load(Ordering::Relaxed) {
                match connector.call(node, Purpose::Peer, &is_ended) {
                    Ok(OpenedSession { node: found, mut session, .. }) if found == node => {
                        session.stop_with(Arc::clone(&is_ended));
                        match present(&mut session, view) {
                            Ok(PeerReply::Member) => {
                                let call = Call::Own { is_ended };
                                connector.requests.ask(Request::Connected { node, session, call });
                                return;
                            }
                            Ok(PeerReply::Other) => {
                                tracing::debug!(%node, %view, "the node is now another process");
                                return;
                            }
                            Err(error) => tracing::debug!(%node, %error, "not connected yet"),
                        }
                    }
                    Ok(opened) => {
                        tracing::error!(%node, found = %opened.node, "another node is at its address");
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

/// Sends the caller's messages. The other end uses the connection only after the caller has
/// confirmed that it keeps it.
fn present(session: &mut Session, view: ViewId) -> Result<PeerReply, SessionError> {
    send_message(session, &PeerRequest::Member { view: view.0 }, CALL)?;
    let heard = receive_message(session, WORD_MAX, CALL)?;
    if heard == PeerReply::Member {
        send_message(session, &PeerRequest::Kept, CALL)?;
        // From now on, the view decides when the connection ends.
        session.stop_with(Arc::default());
    }
    Ok(heard)
}

/// Receives the first message of a caller: the view in which it joined.
pub(crate) fn hear_caller(session: &mut Session) -> Result<ViewId, SessionError> {
    match receive_message(session, WORD_MAX, CALL)? {
        PeerRequest::Member { view } => Ok(ViewId(view)),
        PeerRequest::Kept => Err(SessionError::Malformed),
    }
}

/// Answers the caller. Returns true once the caller keeps the connection; before that, this end
/// does not use it.
pub(crate) fn answer_caller(session: &mut Session, is_meant: bool) -> Result<bool, SessionError> {
    if !is_meant {
        send_message(session, &PeerReply::Other, CALL)?;
        return Ok(false);
    }
    send_message(session, &PeerReply::Member, CALL)?;
    Ok(receive_message::<PeerRequest>(session, WORD_MAX, CALL)? == PeerRequest::Kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: NodeId = NodeId(3);

    #[test]
    fn call_reaches_only_process_of_callers_view() {
        let calls = Calls::default();
        assert!(!calls.is_meant(ViewId(9)), "no member yet");
        calls.meets(ViewId(5), &[X, NodeId(4)]);
        calls.meets(ViewId(6), &[NodeId(5)]);
        assert!(calls.is_meant(ViewId(5)) && calls.is_meant(ViewId(7)));
        assert!(!calls.is_meant(ViewId(4)), "the caller means the process before this one");
    }

    #[test]
    fn caller_from_earlier_incarnation_is_not_expected() {
        let calls = Calls::default();
        calls.meets(ViewId(1), &[NodeId(1)]);
        calls.meets(ViewId(2), &[X]);
        assert!(calls.is_expected(X, ViewId(2), ViewId(2)));
        assert!(calls.is_expected(X, ViewId(3), ViewId(2)), "this member hears of that view later");
        calls.forget(&[X]);
        assert!(!calls.is_expected(X, ViewId(2), ViewId(3)));
        calls.meets(ViewId(4), &[X]);
        assert!(
            !calls.is_expected(X, ViewId(2), ViewId(4))
                && calls.is_expected(X, ViewId(4), ViewId(4))
        );
    }

    #[test]
    fn calls_end_when_caller_or_called_leaves() {
        let calls = Calls::default();
        let (gone, other) =
            (calls.begin(X).expect("it runs"), calls.begin(NodeId(4)).expect("it runs"));
        calls.forget(&[X]);
        assert!(gone.load(Ordering::Relaxed) && !other.load(Ordering::Relaxed));
        calls.end();
        assert!(other.load(Ordering::Relaxed) && calls.begin(X).is_none());
    }
}
