//! The members of a decided view meet, as the initial nodes of a new group do.
//!
//! Nodes outside the view may look for the group at the same time. Such a node learns that the
//! group is restarting, and waits until it can join.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tramontane_control::{Mesh, MeshError, Session};
use tramontane_core::ids::NodeId;

use super::LOOK_PAUSE;
use crate::group::description::terms::Description;
use crate::group::description::view::View;
use crate::group::enter::meeting::{MeetingProgress, MeetsTo, Telling};
use crate::group::enter::place::StartingMember;

impl StartingMember {
    /// Meets the other members of a view. A member that has not yet learned of the decision answers
    /// as if it were running. The node that receives this answer starts to meet again, and so
    /// disappears for the nodes that it has met. If they gave up at once, half of the nodes would
    /// meet while the other half agree, each half waiting for the other.
    pub(super) fn meet_in(
        &self,
        description: &Description,
        view: &View,
        telling: &Telling,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Vec<(NodeId, Session)>, MeshError> {
        loop {
            match self.meet_once_in(description, view, telling, until, cancel) {
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
        telling: &Telling,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Vec<(NodeId, Session)>, MeshError> {
        let addresses = self.addresses_in(view);
        let options = self.mesh_options(description, view, &addresses, until, cancel);
        let meets_to = MeetsTo::Restart { view: view.id.0 };
        let handler = MeetingProgress::new(self.identity.digest, telling, meets_to);
        let mut mesh = Mesh::join_with(options, &handler)?;
        mesh.barrier()?;
        let sessions = view.members.iter().copied().zip(mesh.into_sessions());
        Ok(sessions.filter_map(|(node, session)| Some((node, session?))).collect())
    }
}
