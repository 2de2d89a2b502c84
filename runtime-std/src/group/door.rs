//! The door of a process in a group: who comes, and what becomes of them.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tramontane_core::ids::NodeId;
use tramontane_mesh::{Door, Identity, Listener, Purpose, SharedKey, Talk, TalkError, Visitor};

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
    pub(super) inside: Arc<OnceLock<Arc<Outside>>>,
}

impl Hall {
    /// Opens the door.
    pub(super) fn open(
        &self,
        listener: Listener,
        identity: Identity,
        key: Option<SharedKey>,
    ) -> std::io::Result<Door> {
        let hall = self.clone();
        Door::open(listener, identity, key, move |visitor| hall.receive(visitor))
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
                if let Some(requests) = self.requests() {
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
        self.inside.get().map(|outside| &outside.requests)
    }

    /// Connects a member that calls, if the call is for this process: the answer waits until it is a member.
    fn connect(&self, node: NodeId, mut talk: Talk) -> Result<(), TalkError> {
        let view = hear_caller(&mut talk)?;
        let until = Instant::now() + NOT_YET;
        while self.inside.get().is_none() && Instant::now() < until && talk.is_open() {
            std::thread::sleep(LOOK_PAUSE);
        }
        let outside = self.inside.get().ok_or(TalkError::Stopped)?;
        if answer_caller(&mut talk, outside.calls.is_meant(view))? {
            let call = Call::Theirs { view };
            outside.requests.ask(Request::Connected { node, talk, call });
        }
        Ok(())
    }
}
