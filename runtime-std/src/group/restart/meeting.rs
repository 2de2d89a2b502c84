//! The members of a decided view meet, as the initial nodes of a new group do.
//!
//! Nodes outside the view may look for the group at the same time. Such a node learns that the
//! group is restarting, and waits until it can join.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tramontane_control::{MeetingHandler, Mesh, MeshError, Session};
use tramontane_core::ids::NodeId;

use super::LOOK_PAUSE;
use super::node::lock;
use crate::group::description::terms::Description;
use crate::group::description::view::View;
use crate::group::enter::forming::{RestartWaiting, Waiting};
use crate::group::enter::place::StartingMember;
use crate::group::status::operator;

impl StartingMember {
    /// Meets the other members of a view. A member that has not yet learned of the decision answers
    /// as if it were running. The node that receives this answer starts to meet again, and so
    /// disappears for the nodes that it has met. If they gave up at once, half of the nodes would
    /// meet while the other half agree, each half waiting for the other.
    pub(super) fn meet_in(
        &self,
        description: &Description,
        view: &View,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Vec<(NodeId, Session)>, MeshError> {
        loop {
            match self.meet_once_in(description, view, until, cancel) {
                Err(MeshError::Running { .. } | MeshError::PeerGone { .. })
                    if Instant::now() < until =>
                {
                    std::thread::sleep(LOOK_PAUSE);
                }
                met => return met,
            }
        }
    }

    fn meet_once_in(
        &self,
        description: &Description,
        view: &View,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Vec<(NodeId, Session)>, MeshError> {
        let addresses = self.addresses_in(view);
        let options = self.mesh_options(description, view, &addresses, until, cancel);
        let handler = RestartMeeting::new(self.identity.digest, view);
        let mut mesh = Mesh::join_with(options, &handler)?;
        mesh.barrier()?;
        let sessions = view.members.iter().copied().zip(mesh.into_sessions());
        Ok(sessions.filter_map(|(node, session)| Some((node, session?))).collect())
    }
}

/// Answers operators and other nodes while the members meet.
struct RestartMeeting {
    digest: u64,
    waiting: Mutex<RestartWaiting>,
}

impl RestartMeeting {
    fn new(digest: u64, view: &View) -> Self {
        let why = "its members are meeting".into();
        Self {
            digest,
            waiting: Mutex::new(RestartWaiting { view: view.id.0, missing: Vec::new(), why }),
        }
    }
}

impl MeetingHandler for RestartMeeting {
    fn clients_digest(&self) -> u64 {
        self.digest
    }

    fn waits_for(&self, missing: &[NodeId]) {
        lock(&self.waiting).missing = missing.iter().map(|node| node.get()).collect();
    }

    fn takes_operators(&self) -> bool {
        true
    }

    fn receive(&self, mut session: Session) {
        let waiting = Waiting::Restart(lock(&self.waiting).clone());
        if let Err(error) = operator::answer_forming(&mut session, &waiting) {
            tracing::debug!(%error, "an operator disconnected");
        }
    }
}
