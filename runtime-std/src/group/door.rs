//! The door of a process in a group: who comes, and what becomes of them.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tramontane_control::{Door, Identity, Listener, Purpose, SharedKey, Talk, TalkError, Visitor};
use tramontane_core::ids::NodeId;

use super::operator;
use super::outside::{Call, Outside, answer_caller, hear_caller};
use super::request::{Request, Requests};
use super::status::Board;
use super::supply;

/// How long a peer waits until this process is a member: it was let in a moment ago.
const NOT_YET: Duration = Duration::from_secs(5);

/// Between two looks whether it is.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// What visitors find.
#[derive(Clone, Default)]
pub(super) struct Hall {
    pub(super) board: Board,
    /// Set once this process is a member.
    pub(super) inside: Arc<OnceLock<Inside>>,
}

/// What visitors reach of a member.
pub(super) struct Inside {
    pub(super) requests: Requests,
    /// For peers that call: only where membership changes.
    pub(super) outside: Option<Arc<Outside>>,
}

impl Hall {
    /// Opens the door. `nodes` are all that may ever be members.
    pub(super) fn open(
        &self,
        listener: Listener,
        identity: Identity,
        nodes: impl IntoIterator<Item = NodeId>,
        key: Option<SharedKey>,
    ) -> std::io::Result<Door> {
        let hall = self.clone();
        Door::open(listener, identity, nodes, key, move |visitor| hall.receive(visitor))
    }

    fn receive(&self, visitor: Visitor) {
        let Visitor { purpose, node, mut talk, .. } = visitor;
        match purpose {
            Purpose::Ask => {
                if let Err(error) = operator::answer(&mut talk, &self.board, self.requests()) {
                    tracing::debug!(%error, "an operator went away");
                }
            }
            Purpose::Join => {
                if let Some(Inside { requests, outside: Some(_) }) = self.inside.get() {
                    supply::serve(node, talk, &self.board, requests);
                }
            }
            Purpose::Peer => {
                if let Err(error) = self.connect(node, talk) {
                    tracing::debug!(%node, %error, "a member that called is not connected");
                }
            }
            // A door refuses it.
            Purpose::Meet => {}
        }
    }

    fn requests(&self) -> Option<&Requests> {
        self.inside.get().map(|inside| &inside.requests)
    }

    /// Connects a member that calls, if the call is for this process: the answer waits until it is
    /// a member.
    fn connect(&self, node: NodeId, mut talk: Talk) -> Result<(), TalkError> {
        let view = hear_caller(&mut talk)?;
        let until = Instant::now() + NOT_YET;
        while self.inside.get().is_none() && Instant::now() < until && talk.is_open() {
            std::thread::sleep(LOOK_PAUSE);
        }
        let inside = self.inside.get().and_then(|inside| inside.outside.as_ref());
        let outside = inside.ok_or(TalkError::Stopped)?;
        if answer_caller(&mut talk, outside.calls.is_meant(view))? {
            let call = Call::Theirs { view };
            outside.requests.ask(Request::Connected { node, talk, call });
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

    use tramontane_control::{Address, visit};
    use tramontane_core::ids::ViewId;

    use super::super::outside::{Calls, PeerCalls, PeerHears};
    use super::super::talking::{hear, say};
    use super::*;
    use crate::joined::JoinedBell;
    use crate::tcp::{self, Tcp};
    use tramontane_core::fabric::HostFabric as _;

    const LONG: Duration = Duration::from_secs(60);

    const fn identity(node: u32) -> Identity {
        Identity { node: NodeId(node), incarnation: 1, digest: 7 }
    }

    /// Node 1, which came in a view, what it is asked, and the fabric whose bell is rung for that.
    struct Member {
        door: Door,
        asked: Receiver<Request>,
        outside: Arc<Outside>,
        _fabric: Tcp,
    }

    impl Member {
        fn came(first: ViewId, joined: &[u32]) -> Self {
            let listener =
                Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
            let fabric = Tcp::new(NodeId(1), tcp::Settings::default()).expect("descriptors");
            let (requests, asked) = Requests::new(JoinedBell::Tcp(fabric.local_bell()));
            let outside = Arc::new(Outside {
                identity: identity(1),
                addresses: BTreeMap::new(),
                key: None,
                requests,
                calls: Calls::default(),
            });
            outside.meets(first, &joined.iter().copied().map(NodeId).collect::<Vec<_>>());
            let hall = Hall::default();
            let door = hall.open(listener, identity(1), [NodeId(2)], None).expect("a thread");
            let inside =
                Inside { requests: outside.requests.clone(), outside: Some(Arc::clone(&outside)) };
            assert!(hall.inside.set(inside).is_ok());
            Self { door, asked, outside, _fabric: fabric }
        }

        /// Node 2 calls the process that is node 1 in a view.
        fn called(&self, view: u64) -> (Talk, PeerHears) {
            let never = AtomicBool::new(false);
            let mut talk = visit(self.address(), &identity(2), None, Purpose::Peer, LONG, &never)
                .expect("let in")
                .talk;
            say(&mut talk, &PeerCalls::Member { view }, LONG).expect("it hears");
            let heard = hear(&mut talk, 64, LONG).expect("an answer");
            (talk, heard)
        }

        fn address(&self) -> &Address {
            self.door.address()
        }
    }

    /// The caller came in view 5 and means the process of that view; by now it is another one, of
    /// view 7.
    #[test]
    fn a_call_that_was_left_over_is_sent_away_and_the_one_that_is_meant_is_connected() {
        let member = Member::came(ViewId(7), &[1, 2]);
        let (_talk, heard) = member.called(5);
        assert_eq!(heard, PeerHears::Other);
        let (mut talk, heard) = member.called(7);
        assert_eq!(heard, PeerHears::Member);
        assert!(member.asked.try_recv().is_err(), "the caller has not said that it keeps it");
        say(&mut talk, &PeerCalls::Kept, LONG).expect("it hears");
        let asked = member.asked.recv_timeout(LONG).expect("it is connected");
        assert!(matches!(
            asked,
            Request::Connected { node: NodeId(2), call: Call::Theirs { view: ViewId(7) }, .. }
        ));
    }

    /// Its caller was too slow to hear the answer, and calls again: this end must not keep what
    /// that one has closed.
    #[test]
    fn a_connection_that_its_caller_does_not_keep_is_not_used() {
        let member = Member::came(ViewId(1), &[1, 2]);
        let (talk, heard) = member.called(3);
        assert_eq!(heard, PeerHears::Member);
        drop(talk);
        let (mut talk, _) = member.called(3);
        say(&mut talk, &PeerCalls::Kept, LONG).expect("it hears");
        member.asked.recv_timeout(LONG).expect("it is connected");
        assert!(member.asked.try_recv().is_err(), "once");
        assert!(member.outside.calls.is_expected(NodeId(2), ViewId(3), ViewId(2)));
    }
}
