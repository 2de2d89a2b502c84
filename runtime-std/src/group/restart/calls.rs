//! Connections to other nodes that are restarting.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tramontane_control::{Address, Identity, Purpose, Session, SharedKey, open_session};
use tramontane_core::ids::NodeId;

use super::error::RestartError;
use super::messages::{MESSAGE_BYTES_MAX, NodeAnswer, PATIENCE, RestartReply, RestartRequest};
use crate::session_messages::{ask_each, receive_message, send_message};

/// The shortest and longest time limit for a node to accept a call.
const CALL_MIN: Duration = Duration::from_millis(500);
const CALL_MAX: Duration = Duration::from_secs(2);

/// The addresses of the other nodes.
pub(super) struct Calls {
    pub(super) identity: Identity,
    pub(super) addresses: BTreeMap<NodeId, Address>,
    pub(super) key: Option<SharedKey>,
    /// The time at which this node began to call the others.
    pub(super) since: Instant,
}

impl Calls {
    /// Returns the time limit for a node to accept a call. It grows while the nodes do not agree,
    /// because their machines may be too busy to answer within the shortest one.
    pub(super) fn limit(&self) -> Duration {
        (self.since.elapsed() / 4).clamp(CALL_MIN, CALL_MAX)
    }

    fn call(&self, node: NodeId) -> Result<Session, RestartError> {
        let address = self.addresses.get(&node).ok_or(RestartError::Malformed)?;
        let never = AtomicBool::new(false);
        let key = self.key.as_ref();
        let limit = self.limit();
        let opened = open_session(address, &self.identity, key, Purpose::Restart, limit, &never);
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
        let ask = |node: NodeId| match self.ask(node, &RestartRequest::Answer) {
            Ok(RestartReply::Answer(answer)) if answer.node == node.get() => Some(*answer),
            _ => None,
        };
        ask_each(others, ask, || None).into_iter().filter_map(|(_, answer)| answer).collect()
    }
}
