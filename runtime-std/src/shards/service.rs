//! The service behind a replica's control server, which answers calls from peers, starting
//! replicas, operators, and clients that want a place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tramontane_control::{Client, Purpose, Session, SessionError};
use tramontane_core::ids::{ClientNumber, NodeId, Rank};
use tramontane_core::tram::ReplicaId;

use super::calls::{Calls, answer_not_yet};
use super::founding_stage::FoundingStage;
use super::lives::{Life, Lives};
use super::messages::{
    AskReply, AskRequest, JoinReply, JoinRequest, PATIENCE, REQUEST_MAX, Standing,
};
use super::places::Places;
use super::request::Request;
use super::snapshot;
use super::status::StatusBoard;
use crate::session_messages::{receive_message, send_message};

/// The state from which clients of the control server are served.
pub(super) struct Service {
    pub(super) own: ReplicaId,
    pub(super) places: Places,
    pub(super) lives: Arc<Lives>,
    pub(super) board: StatusBoard,
    formation: Mutex<Formation>,
    /// The replicas that this one waits for until then.
    missing: Mutex<Vec<String>>,
    /// Replicas of the group that have returned, and that have not been seen to count again, with
    /// their processes.
    returning: Mutex<BTreeMap<Rank, u64>>,
    /// Set once the engine of this process runs.
    pub(super) inside: OnceLock<Arc<Calls<Request>>>,
}

/// A replica's knowledge about the forming of its group.
#[derive(Clone, Debug, Default)]
pub(super) struct Formation {
    /// The processes that formed the group, by rank, once known.
    pub(super) founders: Option<Vec<u64>>,
    pub(super) stage: FoundingStage,
}

impl Service {
    /// Creates the service of a starting replica.
    pub(super) fn new(own: ReplicaId, places: Places, lives: Arc<Lives>) -> Self {
        Self {
            own,
            places,
            lives,
            board: StatusBoard::default(),
            formation: Mutex::default(),
            missing: Mutex::default(),
            returning: Mutex::default(),
            inside: OnceLock::new(),
        }
    }

    /// Records how far the group has formed.
    pub(super) fn set_formation(&self, formation: Formation) {
        *self.formation.lock().unwrap_or_else(PoisonError::into_inner) = formation;
    }

    /// Returns how far the group has formed.
    pub(super) fn formation(&self) -> Formation {
        self.formation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the replicas that this one waits for.
    pub(super) fn missing(&self) -> Vec<String> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_missing(&self, missing: Vec<String>) {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = missing;
    }

    /// Removes the replicas that count again from the list of those that have returned. Returns the
    /// number of replicas left.
    pub(super) fn count_returning(&self, counts_again: impl Fn(Rank, u64) -> bool) -> usize {
        let mut returning = self.returning.lock().unwrap_or_else(PoisonError::into_inner);
        returning.retain(|rank, life| !counts_again(*rank, *life));
        returning.len()
    }

    /// Serves one client of the control server.
    pub(super) fn receive(&self, client: Client) {
        let Client { purpose, node, incarnation: life, session } = client;
        let served = match (purpose, self.inside.get()) {
            (Purpose::Ask, _) => self.answer_ask(session),
            (Purpose::Join, _) => self.answer_join(node, life, session),
            (Purpose::Peer, Some(calls)) => calls.answer(node, life, session),
            (Purpose::Peer, None) => answer_not_yet(session),
            // The control server refuses the purpose `Meet`, and replicas do not serve the others.
            (Purpose::Meet | Purpose::Client | Purpose::Restart, _) => Ok(()),
        };
        if let Err(error) = served {
            tracing::debug!(%node, %error, "a client of the control server disconnected");
        }
    }

    fn answer_ask(&self, mut session: Session) -> Result<(), SessionError> {
        let request = receive_message(&mut session, REQUEST_MAX, PATIENCE)?;
        let node = |number| {
            let node = self.places.client_node(ClientNumber(number));
            self.places.client(node).map(|_| node)
        };
        let has_begun = self.formation().stage == FoundingStage::Begun;
        let reply = match (request, has_begun, self.board.status()) {
            (_, false, _) | (AskRequest::Status, _, None) => AskReply::NotYet(self.missing()),
            (AskRequest::Status, _, Some(status)) => AskReply::Status(Box::new(status)),
            (AskRequest::Seats, ..) => AskReply::Seats(self.lives.seats(&self.places)),
            (AskRequest::Claim { number, life }, ..) => {
                AskReply::Claimed(node(number).is_some_and(|node| self.lives.claim(node, life)))
            }
            (AskRequest::GiveBack { number, life }, ..) => {
                if let Some(node) = node(number) {
                    self.lives.give_back(node, life);
                }
                AskReply::GivenBack
            }
        };
        send_message(&mut session, &reply, PATIENCE)
    }

    fn answer_join(
        &self,
        node: NodeId,
        life: u64,
        mut session: Session,
    ) -> Result<(), SessionError> {
        let of_group = |replica: &ReplicaId| replica.group == self.own.group;
        let Some(replica) = self.places.replica(node).filter(of_group) else {
            return Err(SessionError::Malformed);
        };
        match receive_message(&mut session, REQUEST_MAX, PATIENCE)? {
            JoinRequest::Stand { at_least, stage } => {
                let wanted = Life { life, incarnation: u32::from(at_least) };
                let standing = self.standing(replica.rank, node, wanted, stage);
                send_message(&mut session, &JoinReply::Standing(standing), PATIENCE)
            }
            JoinRequest::Snapshot => {
                let requests = self.inside.get().map(|calls| &calls.requests);
                snapshot::give(&mut session, requests)
            }
        }
    }

    /// Returns the state of the group, for a starting replica of the group.
    fn standing(&self, rank: Rank, node: NodeId, wanted: Life, asking: FoundingStage) -> Standing {
        let Formation { founders, stage } = self.formation();
        let is_founder = |founders: &Vec<u64>| founders.get(rank.index()) == Some(&wanted.life);
        let mut returning = self.returning.lock().unwrap_or_else(PoisonError::into_inner);
        let incarnation = match &founders {
            None => 0,
            Some(_) if matches!(asking, FoundingStage::Listed | FoundingStage::Ready) => 0,
            Some(founders) if is_founder(founders) => 1,
            Some(_) => {
                returning.insert(rank, wanted.life);
                self.lives.stand(node, wanted.life, wanted.incarnation)
            }
        };
        let incarnation = u16::try_from(incarnation).unwrap_or(u16::MAX);
        let returning = u16::try_from(returning.len()).unwrap_or(u16::MAX);
        let clients = self.lives.clients(&self.places);
        Standing { founders, stage, incarnation, returning, clients }
    }
}
