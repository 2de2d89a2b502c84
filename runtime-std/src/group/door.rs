//! The door of a process in a group: who comes, and what becomes of them.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tramontane_core::ids::NodeId;
use tramontane_mesh::{Door, Identity, Listener, Purpose, SharedKey, Visitor};

use super::operator;
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
    pub(super) requests: Arc<OnceLock<Requests>>,
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
                if let Err(error) = operator::answer(&mut talk, &self.board, self.requests.get()) {
                    tracing::debug!(%error, "an operator went away");
                }
            }
            Purpose::Join => {
                if let Some(requests) = self.requests.get() {
                    supply::serve(node, talk, &self.board, requests);
                }
            }
            Purpose::Peer => {
                let until = Instant::now() + NOT_YET;
                while self.requests.get().is_none() && Instant::now() < until && talk.is_open() {
                    std::thread::sleep(LOOK_PAUSE);
                }
                if let Some(requests) = self.requests.get() {
                    requests.ask(Request::Connected { node, talk });
                }
            }
            // A door refuses it.
            Purpose::Meet => {}
        }
    }
}
