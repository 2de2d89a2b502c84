//! Connections to other nodes that are restarting.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_control::{Address, Identity, Purpose, Session, SharedKey, open_session};
use tramontane_core::ids::NodeId;

use super::error::RestartError;
use super::messages::{MESSAGE_BYTES_MAX, NodeAnswer, PATIENCE, RestartReply, RestartRequest};
use crate::session_messages::{receive_message, send_message};

/// Time limit for a node to accept a call.
const CALL: Duration = Duration::from_millis(500);

/// The addresses of the other nodes.
pub(super) struct Calls {
    pub(super) identity: Identity,
    pub(super) addresses: BTreeMap<NodeId, Address>,
    pub(super) key: Option<SharedKey>,
}

impl Calls {
    fn call(&self, node: NodeId) -> Result<Session, RestartError> {
        let address = self.addresses.get(&node).ok_or(RestartError::Malformed)?;
        let never = AtomicBool::new(false);
        let key = self.key.as_ref();
        let opened = open_session(address, &self.identity, key, Purpose::Restart, CALL, &never);
        Ok(opened.map_err(|why| RestartError::Gone { node, why: why.to_string() })?.session)
    }

    /// Sends a request to a node.
    pub(super) fn ask(
        &self,
        node: NodeId,
        request: &RestartRequest,
    ) -> Result<RestartReply, RestartError> {
        let mut session = self.call(node)?;
        let gone = |why: tramontane_control::SessionError| RestartError::Gone {
            node,
            why: why.to_string(),
        };
        send_message(&mut session, request, PATIENCE).map_err(gone)?;
        match receive_message(&mut session, MESSAGE_BYTES_MAX, PATIENCE).map_err(gone)? {
            RestartReply::Refused(why) => Err(RestartError::Refused { node, why }),
            reply => Ok(reply),
        }
    }

    /// Asks all other nodes for their answers at once, and returns the answers of those that are
    /// restarting.
    pub(super) fn answers(&self) -> Vec<NodeAnswer> {
        let others = self.addresses.keys().copied().filter(|node| *node != self.identity.node);
        std::thread::scope(|scope| {
            let asked: Vec<_> = others
                .map(|node| {
                    let ask = move || match self.ask(node, &RestartRequest::Answer) {
                        Ok(RestartReply::Answer(answer)) if answer.node == node.get() => {
                            Some(*answer)
                        }
                        _ => None,
                    };
                    scope.spawn(ask)
                })
                .collect();
            asked.into_iter().filter_map(|asked| asked.join().ok().flatten()).collect()
        })
    }
}
