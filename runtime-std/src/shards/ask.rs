//! Questions from operators, and from clients that want a place, to the control servers of
//! replicas.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_control::{
    Identity, OpenSessionError, Purpose, SessionError, incarnation, open_session,
};
use tramontane_core::tram::ReplicaId;

use super::description::Description;
use super::messages::{AskReply, AskRequest, PATIENCE, REPLY_MAX};
use super::places::Places;
use super::start::StartingProcess;
use super::start_error::StartError;
use super::status::ReplicaStatus;
use crate::group::ControlEndpoints;
use crate::session_messages::{ask_each, receive_message, send_message};

/// The reason why a replica does not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The session could not be opened.
    #[error(transparent)]
    OpenSession(#[from] OpenSessionError),
    /// The replica disconnected or stalled in the middle of a message.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The replica's process is running, but its group has not formed yet.
    #[error("starting{}", waiting_for(missing))]
    NotYet {
        /// The replicas that the process is waiting for.
        missing: Vec<String>,
    },
    /// A different replica or program answers at that address.
    #[error(
        "it sent an unexpected answer; check the addresses, and run the same version everywhere"
    )]
    Malformed,
}

fn waiting_for(missing: &[String]) -> String {
    if missing.is_empty() { String::new() } else { format!("; waiting for {}", missing.join(", ")) }
}

/// A process that asks replicas, without being a replica or having a client place.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    identity: Identity,
    endpoints: ControlEndpoints,
    places: Places,
}

impl Asker {
    /// Creates an asker for the overlay of a starting process.
    pub(super) fn new(place: &StartingProcess) -> Self {
        // The incarnation distinguishes two processes of the same node; an asking process's
        // incarnation is never compared.
        let incarnation = incarnation().unwrap_or_default();
        let identity = Identity { node: Identity::NO_MEMBER, incarnation, digest: place.digest };
        Self { identity, endpoints: place.endpoints.clone(), places: place.places.clone() }
    }

    /// Returns the digest of the overlay, which others compare with their own.
    pub(super) const fn digest(&self) -> u64 {
        self.identity.digest
    }

    /// Asks one replica.
    pub(super) fn ask(
        &self,
        replica: ReplicaId,
        what: AskRequest,
        time_limit: Duration,
        cancel: &AtomicBool,
    ) -> Result<AskReply, AskError> {
        let node = self.places.node(replica);
        let address = self.endpoints.addresses.get(&node).ok_or(OpenSessionError::NotThere)?;
        let (key, limit) = (self.endpoints.key.as_ref(), time_limit.min(PATIENCE));
        let opened = open_session(address, &self.identity, key, Purpose::Ask, limit, cancel)?;
        if opened.node != node {
            return Err(AskError::Malformed);
        }
        let mut session = opened.session;
        send_message(&mut session, &what, limit)?;
        match receive_message(&mut session, REPLY_MAX, limit)? {
            AskReply::NotYet(missing) => Err(AskError::NotYet { missing }),
            reply => Ok(reply),
        }
    }

    /// Asks several replicas at the same time.
    pub(super) fn ask_all(
        &self,
        replicas: &[ReplicaId],
        what: AskRequest,
        time_limit: Duration,
        cancel: &AtomicBool,
    ) -> Vec<(ReplicaId, Result<AskReply, AskError>)> {
        let ask = |of| self.ask(of, what, time_limit, cancel);
        ask_each(replicas.iter().copied(), ask, || Err(AskError::Malformed))
    }
}

/// Asks replicas for their status without being a replica.
#[derive(Clone, Debug)]
pub struct Operator {
    asker: Asker,
    places: Places,
}

impl Operator {
    /// Creates an operator for the replicas of a description, which must be the same as theirs.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn new(description: &Description) -> Result<Self, StartError> {
        let place = StartingProcess::of(description)?;
        Ok(Self { asker: Asker::new(&place), places: place.places })
    }

    /// Returns the status of all replicas, with their names. All are asked at the same time.
    #[must_use]
    pub fn statuses(
        &self,
        time_limit: Duration,
        cancel: &AtomicBool,
    ) -> Vec<(String, Result<ReplicaStatus, AskError>)> {
        let replicas: Vec<_> = self.places.replicas().collect();
        let answers = self.asker.ask_all(&replicas, AskRequest::Status, time_limit, cancel);
        let status = |answer: Result<AskReply, AskError>| match answer? {
            AskReply::Status(status) => Ok(*status),
            _ => Err(AskError::Malformed),
        };
        answers.into_iter().map(|(of, answer)| (self.places.name(of), status(answer))).collect()
    }
}
