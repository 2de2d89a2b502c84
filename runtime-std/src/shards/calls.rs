//! Lets a process meet the others, by calls to their control servers and answers to their calls.
//!
//! Of two replicas, the one with the higher node id calls the other; a client calls all replicas.
//! So no pair meets twice at the same time. A caller retries until the two have met, or until its
//! process ends.
//!
//! ```text
//! calls                                       is called
//! Meet: a fresh view, its incarnation ----->
//!                                     <-----  Met: its incarnation
//! Kept                                ----->
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tramontane_control::{
    Identity, OpenSessionError, OpenedSession, Purpose, Refusal, Session, SessionError,
    incarnation, open_session,
};
use tramontane_core::ids::{NodeId, ViewId};

use super::description::Description;
use super::lives::Lives;
use super::messages::{PeerReply, PeerRequest, REQUEST_MAX};
use super::shown_disks::DiskAtStart;
use crate::group::ControlEndpoints;
use crate::requests::Requests;
use crate::session_messages::{receive_message, send_message};
use crate::shards::lives::Life;
use crate::shards::messages::{PATIENCE, REPLY_MAX};

/// The pause between the first two calls to a node, and the maximum pause between two calls.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// Two processes have agreed on a view.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) node: NodeId,
    pub(super) life: Life,
    pub(super) view: ViewId,
    /// The other process's disk, if it is a replica with one.
    pub(super) disk: Option<DiskAtStart>,
    pub(super) session: Session,
}

/// The result of a meeting.
#[derive(Debug)]
pub(super) enum Meeting {
    Met(Met),
    /// The other process knows a later process of this node, or knew this node before it lost its
    /// memory.
    Outdated(NodeId),
    /// The other process has seen more on this replica's disk than the disk had at the start.
    DiskOlder(NodeId),
    /// A process that this one calls has given up their shared view.
    GivenUp(NodeId, ViewId),
    /// The other process, which this one has never met, has a different key, program or
    /// configuration.
    Refused(NodeId, OpenSessionError),
}

/// Everything that a process needs to meet others. `R` is the type of requests to the thread that
/// drives the process.
pub(super) struct Calls<R> {
    pub(super) identity: Identity,
    /// This process's incarnation.
    pub(super) incarnation: u32,
    /// This replica's disk, if it has one.
    pub(super) disk: Option<DiskAtStart>,
    pub(super) endpoints: ControlEndpoints,
    pub(super) lives: Arc<Lives>,
    pub(super) requests: Requests<R>,
    /// Flag that is set once this process ends its calls.
    pub(super) is_over: Arc<AtomicBool>,
    /// The processes whose disks were found to be older than before.
    pub(super) rejected: Mutex<BTreeMap<NodeId, u64>>,
}

impl<R: From<Meeting> + Send + 'static> Calls<R> {
    /// Calls a node in a separate thread until the two have met.
    pub(super) fn call(self: &Arc<Self>, node: NodeId) {
        let calls = Arc::clone(self);
        let spawned = std::thread::Builder::new()
            .name("tramontane-call".into())
            .spawn(move || calls.call_until_met(node));
        if let Err(error) = spawned {
            tracing::error!(%node, %error, "cannot start a thread to connect");
        }
    }

    /// Asks a node that calls this one to call again, because this one has given up their view. A
    /// node whose process has been lost will call anyway once it has restarted.
    pub(super) fn ask_for_call(self: &Arc<Self>, node: NodeId, view: ViewId) {
        // A client has no address, but notices by itself when a view has been given up.
        self.tell(node, PeerRequest::CallAgain { view: view.0 });
    }

    /// Rejects a process of a replica whose disk lacks something that the replica has shown here.
    pub(super) fn reject_disk(self: &Arc<Self>, node: NodeId, life: u64) {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner).insert(node, life);
        self.tell(node, self.rejection(life));
    }

    const fn rejection(&self, life: u64) -> PeerRequest {
        PeerRequest::DiskOlder { life, incarnation: self.incarnation }
    }

    fn has_rejected(&self, node: NodeId, life: u64) -> bool {
        let rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        rejected.get(&node) == Some(&life)
    }

    /// Sends a request to a node in a separate thread.
    fn tell(self: &Arc<Self>, node: NodeId, request: PeerRequest) {
        let Some(address) = self.endpoints.addresses.get(&node).cloned() else { return };
        let calls = Arc::clone(self);
        let ask = move || {
            let (key, purpose) = (calls.endpoints.key.as_ref(), Purpose::Peer);
            let opened =
                open_session(&address, &calls.identity, key, purpose, PATIENCE, &calls.is_over);
            let asked = opened.map(|of| {
                let mut session = of.session;
                send_message(&mut session, &request, PATIENCE)
            });
            tracing::debug!(%node, ?request, ?asked, "told a peer");
        };
        let spawned = std::thread::Builder::new().name("tramontane-call".into()).spawn(ask);
        if let Err(error) = spawned {
            tracing::error!(%node, %error, "cannot start a thread to connect");
        }
    }

    fn call_until_met(&self, node: NodeId) {
        let (mut pause, pause_max) = PAUSES;
        let mut is_told = false;
        while !self.is_over.load(Ordering::Relaxed) {
            match self.call_once(node) {
                // An earlier process of that node had the same configuration as this process, so
                // the fault lies with its replacement, and this process continues.
                Ok(Some(Meeting::Refused(node, error))) if self.lives.knows(node) => {
                    if !std::mem::replace(&mut is_told, true) {
                        let error = why_refused(&error, self.identity.digest);
                        tracing::warn!(%node, error, "ignored a process with a different configuration that took the place of this node");
                    }
                }
                Ok(Some(meeting)) => {
                    self.requests.ask(meeting.into());
                    return;
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(%node, %error, "not met yet"),
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(pause_max);
        }
    }

    /// Makes one call. Returns `None` if the called process is not running, or is not in its group
    /// yet.
    fn call_once(&self, node: NodeId) -> Result<Option<Meeting>, SessionError> {
        let Some(address) = self.endpoints.addresses.get(&node) else { return Ok(None) };
        let key = self.endpoints.key.as_ref();
        let opened =
            open_session(address, &self.identity, key, Purpose::Peer, PATIENCE, &self.is_over);
        let OpenedSession { node: found, incarnation: life, mut session } = match opened {
            Ok(opened) => opened,
            Err(error) if is_final(&error) => return Ok(Some(Meeting::Refused(node, error))),
            Err(error) => {
                tracing::debug!(%node, %error, "not connected yet");
                return Ok(None);
            }
        };
        if found != node {
            tracing::error!(%node, %found, "another node is at its address");
            return Ok(None);
        }
        session.stop_with(Arc::clone(&self.is_over));
        if self.has_rejected(node, life) {
            send_message(&mut session, &self.rejection(life), PATIENCE)?;
            return Ok(None);
        }
        let view = ViewId(incarnation().map_err(SessionError::Local)?);
        let request =
            PeerRequest::Meet { view: view.0, incarnation: self.incarnation, disk: self.disk };
        send_message(&mut session, &request, PATIENCE)?;
        match receive_message(&mut session, REPLY_MAX, PATIENCE)? {
            PeerReply::NotYet => Ok(None),
            PeerReply::Outdated => Ok(Some(Meeting::Outdated(node))),
            PeerReply::DiskOlder => Ok(Some(Meeting::DiskOlder(node))),
            PeerReply::Met { incarnation, disk } => {
                let life = Life { life, incarnation };
                if !self.lives.comes(node, life) {
                    send_message(&mut session, &PeerRequest::Outdated, PATIENCE)?;
                    return Ok(None);
                }
                send_message(&mut session, &PeerRequest::Kept, PATIENCE)?;
                // From now on, the fabric decides when the connection ends.
                session.stop_with(Arc::default());
                Ok(Some(Meeting::Met(Met { node, life, view, disk, session })))
            }
        }
    }

    /// Answers a call.
    pub(super) fn answer(
        &self,
        node: NodeId,
        life: u64,
        mut session: Session,
    ) -> Result<(), SessionError> {
        if self.is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (view, incarnation, disk) = match receive_message(&mut session, REQUEST_MAX, PATIENCE)?
        {
            PeerRequest::Meet { view, incarnation, disk } => (view, incarnation, disk),
            PeerRequest::CallAgain { view } => {
                self.requests.ask(Meeting::GivenUp(node, ViewId(view)).into());
                return Ok(());
            }
            PeerRequest::DiskOlder { life: rejected, incarnation } => {
                // An earlier process may be meant, or the caller may be an earlier one.
                let is_meant = rejected == self.identity.incarnation;
                if is_meant && self.lives.is_current(node, Life { life, incarnation }) {
                    self.requests.ask(Meeting::DiskOlder(node).into());
                }
                return Ok(());
            }
            PeerRequest::Kept | PeerRequest::Outdated => return Err(SessionError::Malformed),
        };
        if self.has_rejected(node, life) {
            return send_message(&mut session, &PeerReply::DiskOlder, PATIENCE);
        }
        let life = Life { life, incarnation };
        if !self.lives.is_current(node, life) {
            return send_message(&mut session, &PeerReply::Outdated, PATIENCE);
        }
        let reply = PeerReply::Met { incarnation: self.incarnation, disk: self.disk };
        send_message(&mut session, &reply, PATIENCE)?;
        match receive_message(&mut session, REQUEST_MAX, PATIENCE)? {
            PeerRequest::Kept if self.lives.comes(node, life) => {
                let met = Met { node, life, view: ViewId(view), disk, session };
                self.requests.ask(Meeting::Met(met).into());
            }
            // A later process of the node has called in the meantime.
            PeerRequest::Kept => {}
            PeerRequest::Outdated => {
                self.requests.ask(Meeting::Outdated(node).into());
            }
            PeerRequest::Meet { .. }
            | PeerRequest::CallAgain { .. }
            | PeerRequest::DiskOlder { .. } => {
                return Err(SessionError::Malformed);
            }
        }
        Ok(())
    }
}

/// Answers a call while this process is not in a group yet.
pub(super) fn answer_not_yet(mut session: Session) -> Result<(), SessionError> {
    let _: PeerRequest = receive_message(&mut session, REQUEST_MAX, PATIENCE)?;
    send_message(&mut session, &PeerReply::NotYet, PATIENCE)
}

/// Describes why a process is refused, naming the fields of the overlay file that differ.
pub(super) fn why_refused(error: &OpenSessionError, own_digest: u64) -> String {
    let fields = match error {
        OpenSessionError::OtherConfiguration { digest } => {
            Description::differing(own_digest, *digest)
        }
        _ => String::new(),
    };
    if fields.is_empty() {
        return error.to_string();
    }
    format!("it has a different configuration ({fields}); give all processes the same overlay file")
}

/// Returns whether another call would end the same way.
pub(super) const fn is_final(error: &OpenSessionError) -> bool {
    matches!(
        error,
        OpenSessionError::WrongKey
            | OpenSessionError::OtherConfiguration { .. }
            | OpenSessionError::Refused(
                Refusal::Version | Refusal::KeyMode | Refusal::Key | Refusal::NotAMember
            )
    )
}

/// Opens a session from a starting replica to another replica of its group.
pub(super) fn open_join(
    identity: &Identity,
    endpoints: &ControlEndpoints,
    node: NodeId,
    time_limit: Duration,
    cancel: &AtomicBool,
) -> Result<OpenedSession, OpenSessionError> {
    let address = endpoints.addresses.get(&node).ok_or(OpenSessionError::NotThere)?;
    let key = endpoints.key.as_ref();
    open_session(address, identity, key, Purpose::Join, time_limit.min(PATIENCE), cancel)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::mpsc::Receiver;

    use tramontane_control::{ControlServer, Listener};

    use super::*;
    use crate::fabric::AnyBell;
    use crate::tcp::{self, Tcp};
    use tramontane_core::fabric::HostFabric as _;

    const LONG: Duration = Duration::from_secs(60);
    const LEASE: Duration = Duration::from_secs(60);

    /// One of two processes, with its calls and their results.
    struct CallingProcess {
        calls: Arc<Calls<Meeting>>,
        met: Receiver<Meeting>,
        _server: ControlServer,
        _fabric: Tcp,
    }

    /// Creates a process of a node that knows these addresses.
    fn process(
        node: u32,
        life: u64,
        listener: Listener,
        others: &[(u32, SocketAddr)],
    ) -> CallingProcess {
        let fabric = Tcp::new(NodeId(node), tcp::Settings::default()).expect("descriptors");
        let (requests, met) = Requests::new(AnyBell::Tcp(fabric.local_bell()));
        let addresses: BTreeMap<_, _> =
            others.iter().map(|(node, at)| (NodeId(*node), (*at).into())).collect();
        let identity = Identity { node: NodeId(node), incarnation: life, digest: 7 };
        let calls = Arc::new(Calls {
            identity,
            incarnation: 1,
            disk: None,
            endpoints: ControlEndpoints { addresses, key: None },
            lives: Arc::new(Lives::new(LEASE)),
            requests,
            is_over: Arc::default(),
            rejected: Mutex::default(),
        });
        let answering = Arc::clone(&calls);
        let server = ControlServer::open(listener, identity, (0..3).map(NodeId), None, move |of| {
            // The test may have ended already, so that no process receives the answer.
            let _ = answering.answer(of.node, of.incarnation, of.session);
        });
        CallingProcess { calls, met, _server: server.expect("a thread"), _fabric: fabric }
    }

    fn listener() -> (Listener, SocketAddr) {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("it is bound");
        (socket.try_into().expect("a listener"), address)
    }

    /// Creates two processes. Node 2 calls node 1.
    fn two() -> (CallingProcess, CallingProcess) {
        let ((first, at), (second, other)) = (listener(), listener());
        let called = process(1, 10, first, &[(2, other)]);
        (called, process(2, 20, second, &[(1, at)]))
    }

    #[test]
    fn request_for_new_view_abandons_current_view() {
        let (called, caller) = two();
        caller.calls.call(NodeId(1));
        let mut views = Vec::new();
        for (process, node, life) in [(&caller, 1, 10), (&called, 2, 20)] {
            let Ok(Meeting::Met(met)) = process.met.recv_timeout(LONG) else {
                panic!("they have met");
            };
            assert_eq!((met.node, met.life), (NodeId(node), Life { life, incarnation: 1 }));
            views.push(met.view);
        }
        assert_eq!(views[0], views[1]);
        called.calls.ask_for_call(NodeId(2), views[0]);
        let heard = caller.met.recv_timeout(LONG).expect("it is asked");
        assert!(matches!(heard, Meeting::GivenUp(NodeId(1), view) if view == views[0]));
    }

    #[test]
    fn outdated_process_is_rejected() {
        let (called, caller) = two();
        assert!(called.calls.lives.comes(NodeId(2), Life { life: 21, incarnation: 2 }));
        caller.calls.call(NodeId(1));
        let heard = caller.met.recv_timeout(LONG).expect("it is told");
        assert!(matches!(heard, Meeting::Outdated(NodeId(1))));
        assert!(called.met.try_recv().is_err());
    }

    #[test]
    fn caller_rejects_process_that_lost_its_memory() {
        let (called, caller) = two();
        assert!(caller.calls.lives.comes(NodeId(1), Life { life: 9, incarnation: 1 }));
        caller.calls.call(NodeId(1));
        let heard = called.met.recv_timeout(LONG).expect("it is told");
        assert!(matches!(heard, Meeting::Outdated(NodeId(2))));
        caller.calls.is_over.store(true, Ordering::Relaxed);
    }

    /// Waits until a process hears that its disk is older than what another node has seen.
    fn hears_of_older_disk(process: &CallingProcess, from: u32) {
        let heard = process.met.recv_timeout(LONG).expect("it is told");
        assert!(matches!(heard, Meeting::DiskOlder(node) if node == NodeId(from)), "{heard:?}");
    }

    #[test]
    fn older_disk_rejects_one_process_only() {
        let (called, caller) = two();
        called.calls.reject_disk(NodeId(2), 19);
        assert!(caller.met.recv_timeout(Duration::from_millis(200)).is_err());
        called.calls.reject_disk(NodeId(2), 20);
        hears_of_older_disk(&caller, 1);
        caller.calls.call(NodeId(1));
        hears_of_older_disk(&caller, 1);
        assert!(called.met.try_recv().is_err(), "they do not meet");
    }

    #[test]
    fn caller_does_not_meet_process_with_older_disk() {
        let (called, caller) = two();
        caller.calls.reject_disk(NodeId(1), 10);
        hears_of_older_disk(&called, 2);
        caller.calls.call(NodeId(1));
        hears_of_older_disk(&called, 2);
        assert!(caller.met.try_recv().is_err(), "they do not meet");
        caller.calls.is_over.store(true, Ordering::Relaxed);
    }

    #[test]
    fn outdated_process_rejects_no_disk() {
        let (called, caller) = two();
        assert!(called.calls.lives.comes(NodeId(2), Life { life: 21, incarnation: 2 }));
        caller.calls.reject_disk(NodeId(1), 10);
        assert!(called.met.recv_timeout(Duration::from_millis(200)).is_err());
    }
}
