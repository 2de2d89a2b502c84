//! An operator's client for the control servers of members. It asks for their status, and can ask a
//! member to leave.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_control::{
    Identity, OpenSessionError, Purpose, SessionError, incarnation, open_session,
};
use tramontane_core::ids::NodeId;

use super::group_status::GroupStatus;
use super::operator;
use super::operator::{OperatorReply, OperatorRequest};
use crate::group::control::control_endpoints::{ControlEndpoints, ControlEndpointsError};
use crate::group::description::digest::differing;
use crate::group::description::terms::Description;
use crate::session_messages::ask_each;
use crate::shared_memory::Root;

/// The reason why a node does not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// The description does not contain this node.
    #[error("node {0} is not in the group file; use one of the nodes listed there")]
    UnknownNode(u32),
    /// The session could not be opened.
    #[error(transparent)]
    OpenSession(#[from] OpenSessionError),
    /// The node disconnected or stalled in the middle of a message.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The node's process is running, but is not a member yet.
    #[error("it is starting and not a member yet; try again later")]
    NotYet,
    /// The node's process is waiting for other nodes, with which it will form the group.
    #[error("{}", forming(missing, but.as_deref()))]
    Forming {
        /// Their ids.
        missing: Vec<u32>,
        /// The reason why the node would not form the group even if the missing nodes were present.
        but: Option<String>,
    },
    /// The node's process is waiting for something else. The text is the reason.
    #[error("{0}")]
    Waiting(String),
    /// The node has a different description.
    #[error(
        "it has a different configuration{}; use the same group file as the nodes",
        if fields.is_empty() { String::new() } else { format!(" ({fields})") }
    )]
    OtherConfiguration {
        /// The fields that differ, as far as they can be determined.
        fields: String,
    },
    /// The node's process is still running, but is no longer a member.
    #[error("it has halted or left, and is no longer a member; its process reports the reason")]
    Over,
    /// A different node or program answers at that address.
    #[error(
        "it sent an unexpected answer; check the addresses, and run the same version everywhere"
    )]
    Malformed,
}

impl From<OperatorReply> for OperatorError {
    /// Returns the error for a node that does not do what it was asked.
    fn from(reply: OperatorReply) -> Self {
        match reply {
            OperatorReply::NotYet => Self::NotYet,
            OperatorReply::Over => Self::Over,
            OperatorReply::Forming { missing, but } => Self::Forming { missing, but },
            OperatorReply::Restarting(what) | OperatorReply::Waiting(what) => Self::Waiting(what),
            OperatorReply::Status(_) | OperatorReply::Leaving => Self::Malformed,
        }
    }
}

fn forming(missing: &[u32], but: Option<&str>) -> String {
    let missing: Vec<String> = missing.iter().map(u32::to_string).collect();
    let but = but.map(|but| format!(" or for a running member: {but}")).unwrap_or_default();
    format!("forming; waiting for {}{but}", missing.join(", "))
}

/// Connects to the control servers of a group's processes without being a member.
#[derive(Debug)]
pub struct OperatorClient {
    endpoints: ControlEndpoints,
    identity: Identity,
}

impl OperatorClient {
    /// Creates a client for the nodes of a description, which must be the same as theirs. `root` is
    /// the folder of all groups over shared memory.
    ///
    /// # Errors
    /// [`ControlEndpointsError`].
    pub fn new(description: &Description, root: &Root) -> Result<Self, ControlEndpointsError> {
        let endpoints = ControlEndpoints::of(description, root)?;
        // The incarnation distinguishes two processes of the same node; an operator's incarnation
        // is never compared.
        let incarnation = incarnation().unwrap_or_default();
        let identity =
            Identity { node: Identity::NO_MEMBER, incarnation, digest: description.digest() };
        Ok(Self { endpoints, identity })
    }

    /// Returns the status of a node.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub fn status(
        &self,
        node: u32,
        time_limit: Duration,
        cancel: &AtomicBool,
    ) -> Result<GroupStatus, OperatorError> {
        match self.ask(node, OperatorRequest::Status, time_limit, cancel)? {
            (_, OperatorReply::Status(status)) => Ok(*status),
            (_, other) => Err(other.into()),
        }
    }

    /// Returns the status of all nodes, which are asked at the same time.
    #[must_use]
    pub fn statuses(
        &self,
        time_limit: Duration,
        cancel: &AtomicBool,
    ) -> BTreeMap<u32, Result<GroupStatus, OperatorError>> {
        let nodes = self.endpoints.addresses.keys().map(|node| node.get());
        let ask = |node| self.status(node, time_limit, cancel);
        ask_each(nodes, ask, || Err(OperatorError::Malformed)).into_iter().collect()
    }

    /// Asks a node to leave its group. The node starts to leave at once, and has left when the
    /// others are in a view that excludes it. Returns the incarnation of the node's process, for
    /// [`OperatorClient::has_ended`].
    ///
    /// # Errors
    /// [`OperatorError`].
    pub fn ask_to_leave(
        &self,
        node: u32,
        time_limit: Duration,
        cancel: &AtomicBool,
    ) -> Result<u64, OperatorError> {
        match self.ask(node, OperatorRequest::Leave, time_limit, cancel)? {
            (incarnation, OperatorReply::Leaving) => Ok(incarnation),
            (_, other) => Err(other.into()),
        }
    }

    /// Returns whether that incarnation of a node has ended: its process has released its address
    /// and its application, or a different process has replaced it.
    #[must_use]
    pub fn has_ended(
        &self,
        node: u32,
        incarnation: u64,
        time_limit: Duration,
        cancel: &AtomicBool,
    ) -> bool {
        match self.ask(node, OperatorRequest::Status, time_limit, cancel) {
            Ok((found, _)) => found != incarnation,
            Err(OperatorError::OpenSession(OpenSessionError::NotThere)) => true,
            Err(_) => false,
        }
    }

    /// Returns the node's answer, and the incarnation of its process.
    fn ask(
        &self,
        node: u32,
        what: OperatorRequest,
        time_limit: Duration,
        cancel: &AtomicBool,
    ) -> Result<(u64, OperatorReply), OperatorError> {
        let ControlEndpoints { addresses, key } = &self.endpoints;
        let address = addresses.get(&NodeId(node)).ok_or(OperatorError::UnknownNode(node))?;
        let opened =
            open_session(address, &self.identity, key.as_ref(), Purpose::Ask, time_limit, cancel);
        let opened = opened.map_err(|error| match error {
            OpenSessionError::OtherConfiguration { digest } => OperatorError::OtherConfiguration {
                fields: differing(self.identity.digest, digest),
            },
            error => error.into(),
        })?;
        if opened.node != NodeId(node) {
            return Err(OperatorError::Malformed);
        }
        let mut session = opened.session;
        Ok((opened.incarnation, operator::ask(&mut session, what)?))
    }
}
