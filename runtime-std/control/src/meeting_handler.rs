//! Reports on a meeting in progress.

use tramontane_core::ids::NodeId;

use super::address::Address;
use super::refusal::Refusal;
use super::session::Session;

/// Receives reports during a meeting, about missing members and about other processes at members'
/// addresses, and serves operators. Calls come from several threads, and should return soon.
pub trait MeetingHandler: Sync {
    /// Returns the digest that clients must have, as at a [`ControlServer`](super::ControlServer).
    /// It differs from the digest by which members meet.
    fn clients_digest(&self) -> u64;

    /// Reports that these members have not arrived yet. Called repeatedly.
    fn waits_for(&self, missing: &[NodeId]);

    /// Reports that the process at a member's address did not prove that it has the group's key,
    /// and refused this one. It may be any process, so the meeting continues. Called once per
    /// member and refusal.
    fn met_stranger(&self, peer: NodeId, address: &Address, refusal: Refusal) {
        tracing::warn!(
            %peer, %address,
            "the process at a member's address does not match: {refusal}; trying again"
        );
    }

    /// Returns whether to serve operators that have the key, if there is one, and
    /// [`clients_digest`](Self::clients_digest). Otherwise they are refused with
    /// [`Refusal::NotRunning`].
    fn takes_operators(&self) -> bool {
        false
    }

    /// Serves such an operator. The call may take as long as the session.
    fn receive(&self, session: Session) {
        drop(session);
    }
}

/// Ignores all reports of a meeting. Clients must have the digest of the meeting.
pub(super) struct NoHandler(pub(super) u64);

impl MeetingHandler for NoHandler {
    fn clients_digest(&self) -> u64 {
        self.0
    }

    fn waits_for(&self, _: &[NodeId]) {}
}
