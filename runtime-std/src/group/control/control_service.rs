//! The control server of a process in a group, and the service for each kind of client.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tramontane_control::client_messages::ClientRefusal;
use tramontane_control::{
    Client, ControlServer, Identity, Listener, Purpose, Session, SessionError, SharedKey,
};
use tramontane_core::ids::NodeId;

use super::clients::{Clients, refuse};
use super::peer_connector::{PeerConnector, answer_caller, hear_caller};
use crate::group::durable::comparison::SharedLogs;
use crate::group::engine::request::{Call, Request, Requests};
use crate::group::status::group_status::SharedStatus;
use crate::group::status::operator;
use crate::group::supply::serve as supply;

/// The time that a peer waits for this process to become a member, after the group has admitted it.
const NOT_YET: Duration = Duration::from_secs(5);

/// The interval between checks of whether this process has become a member.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// The state from which control clients are served.
#[derive(Clone, Default)]
pub(crate) struct ControlService {
    pub(crate) board: SharedStatus,
    /// Set once this process is a member.
    pub(crate) inside: Arc<OnceLock<MemberAccess>>,
}

/// The parts of a member that control clients can reach.
pub(crate) struct MemberAccess {
    pub(crate) requests: Requests,
    /// For peers that call. Present only if membership changes.
    pub(crate) connector: Option<Arc<PeerConnector>>,
    /// The logs from which joining nodes are supplied.
    pub(crate) logs: SharedLogs,
    pub(crate) clients: Arc<dyn Clients>,
}

impl ControlService {
    /// Opens the control server. `nodes` are all nodes that may ever be members.
    pub(crate) fn open(
        &self,
        listener: Listener,
        identity: Identity,
        nodes: impl IntoIterator<Item = NodeId>,
        key: Option<SharedKey>,
    ) -> std::io::Result<ControlServer> {
        let service = self.clone();
        ControlServer::open(listener, identity, nodes, key, move |client| service.receive(client))
    }

    fn receive(&self, client: Client) {
        let Client { purpose, node, mut session, .. } = client;
        match purpose {
            Purpose::Ask => {
                if let Err(error) = operator::answer(&mut session, &self.board, self.requests()) {
                    tracing::debug!(%error, "an operator disconnected");
                }
            }
            Purpose::Join => {
                if let Some(MemberAccess { requests, connector: Some(_), logs, .. }) =
                    self.inside.get()
                {
                    supply::serve(node, session, &self.board, requests, logs);
                }
            }
            Purpose::Peer => {
                if let Err(error) = self.connect(node, session) {
                    tracing::debug!(%node, %error, "a member that called is not connected");
                }
            }
            Purpose::Client => match self.inside.get() {
                Some(inside) => inside.clients.receive(session),
                None => refuse(session, ClientRefusal::NotNow),
            },
            // The control server itself refuses this purpose.
            Purpose::Meet => {}
            // This process is a member, or is about to become one, and the restarting node learns
            // that from the answer.
            Purpose::Restart => {}
        }
    }

    fn requests(&self) -> Option<&Requests> {
        self.inside.get().map(|inside| &inside.requests)
    }

    /// Connects a calling member if the call is for this process. The answer waits until this
    /// process is a member.
    fn connect(&self, node: NodeId, mut session: Session) -> Result<(), SessionError> {
        let view = hear_caller(&mut session)?;
        let until = Instant::now() + NOT_YET;
        while self.inside.get().is_none() && Instant::now() < until && session.is_open() {
            std::thread::sleep(LOOK_PAUSE);
        }
        let inside = self.inside.get().and_then(|inside| inside.connector.as_ref());
        let connector = inside.ok_or(SessionError::Stopped)?;
        if answer_caller(&mut session, connector.calls.is_meant(view))? {
            let call = Call::Theirs { view };
            connector.requests.ask(Request::Connected { node, session, call });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::SocketAddr;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::Receiver;

    use tramontane_control::{Address, open_session};
    use tramontane_core::ids::ViewId;

    use super::*;
    use crate::fabric::AnyBell;
    use crate::group::control::clients::NoClients;
    use crate::group::control::peer_connector::{Calls, PeerReply, PeerRequest};
    use crate::session_messages::{receive_message, send_message};
    use crate::tcp::{self, Tcp};
    use tramontane_core::fabric::HostFabric as _;

    const LONG: Duration = Duration::from_secs(60);

    const fn identity(node: u32) -> Identity {
        Identity { node: NodeId(node), incarnation: 1, digest: 7 }
    }

    /// Node 1, its view, its requests, and the fabric whose bell is rung for them.
    struct AskedMember {
        server: ControlServer,
        asked: Receiver<Request>,
        connector: Arc<PeerConnector>,
        _fabric: Tcp,
    }

    impl AskedMember {
        fn came(first: ViewId, joined: &[u32]) -> Self {
            let listener =
                Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
            let fabric = Tcp::new(NodeId(1), tcp::Settings::default()).expect("descriptors");
            let (requests, asked) = Requests::new(AnyBell::Tcp(fabric.local_bell()));
            let connector = Arc::new(PeerConnector {
                identity: identity(1),
                addresses: BTreeMap::new(),
                key: None,
                requests,
                calls: Calls::default(),
            });
            connector.meets(first, &joined.iter().copied().map(NodeId).collect::<Vec<_>>());
            let service = ControlService::default();
            let server = service.open(listener, identity(1), [NodeId(2)], None).expect("a thread");
            let inside = MemberAccess {
                logs: SharedLogs::default(),
                requests: connector.requests.clone(),
                connector: Some(Arc::clone(&connector)),
                clients: Arc::new(NoClients),
            };
            assert!(service.inside.set(inside).is_ok());
            Self { server, asked, connector, _fabric: fabric }
        }

        /// Lets node 2 call the process that is node 1 in a view.
        fn called(&self, view: u64) -> (Session, PeerReply) {
            let never = AtomicBool::new(false);
            let mut session =
                open_session(self.address(), &identity(2), None, Purpose::Peer, LONG, &never)
                    .expect("let in")
                    .session;
            send_message(&mut session, &PeerRequest::Member { view }, LONG).expect("it hears");
            let heard = receive_message(&mut session, 64, LONG).expect("an answer");
            (session, heard)
        }

        fn address(&self) -> &Address {
            self.server.address()
        }
    }

    /// The caller joined in view 5 and calls the process of that view. By now, the node is a
    /// different process, which joined in view 7.
    #[test]
    fn only_call_for_current_process_is_accepted() {
        let member = AskedMember::came(ViewId(7), &[1, 2]);
        let (_talk, heard) = member.called(5);
        assert_eq!(heard, PeerReply::Other);
        let (mut session, heard) = member.called(7);
        assert_eq!(heard, PeerReply::Member);
        assert!(member.asked.try_recv().is_err(), "the caller has not said that it keeps it");
        send_message(&mut session, &PeerRequest::Kept, LONG).expect("it hears");
        let asked = member.asked.recv_timeout(LONG).expect("it is connected");
        assert!(matches!(
            asked,
            Request::Connected { node: NodeId(2), call: Call::Theirs { view: ViewId(7) }, .. }
        ));
    }

    /// The caller timed out before it received the answer, and calls again. This end must not keep
    /// the connection that the caller has closed.
    #[test]
    fn unconfirmed_peer_connection_is_not_used() {
        let member = AskedMember::came(ViewId(1), &[1, 2]);
        let (session, heard) = member.called(3);
        assert_eq!(heard, PeerReply::Member);
        drop(session);
        let (mut session, _) = member.called(3);
        send_message(&mut session, &PeerRequest::Kept, LONG).expect("it hears");
        member.asked.recv_timeout(LONG).expect("it is connected");
        assert!(member.asked.try_recv().is_err(), "once");
        assert!(member.connector.calls.is_expected(NodeId(2), ViewId(3), ViewId(2)));
    }
}
