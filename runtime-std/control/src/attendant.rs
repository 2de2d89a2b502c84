//! Who hears of a meeting while it lasts.

use tramontane_core::ids::NodeId;

use super::address::Address;
use super::refusal::Refusal;
use super::talk::Talk;

/// Hears of a meeting while it lasts: who is missing, who is at the address of a member and is
/// none, and who asks. Calls come from several threads, and should return soon.
pub trait Attendant: Sync {
    /// The digest that visitors go by, as at a [`Door`](super::Door): not the one that members meet
    /// by.
    fn visitors_digest(&self) -> u64;

    /// These members are not there yet. Said again and again.
    fn waits_for(&self, missing: &[NodeId]);

    /// At the address of a member somebody answers who did not show that it has the group's key,
    /// and says so. It may be anybody, so the meeting goes on. Said once for each member and
    /// refusal.
    fn met_stranger(&self, peer: NodeId, address: &Address, refusal: Refusal) {
        tracing::warn!(%peer, %address, "the program at a member's address came {refusal}; trying on");
    }

    /// An operator came with the key, if there is one, and with
    /// [`visitors_digest`](Self::visitors_digest). Otherwise operators are told
    /// [`Refusal::NotRunning`].
    fn takes_operators(&self) -> bool {
        false
    }

    /// Such an operator. The call may take as long as the talk.
    fn receive(&self, talk: Talk) {
        drop(talk);
    }
}

impl<A: Attendant + ?Sized> Attendant for &A {
    fn visitors_digest(&self) -> u64 {
        (**self).visitors_digest()
    }

    fn waits_for(&self, missing: &[NodeId]) {
        (**self).waits_for(missing);
    }

    fn met_stranger(&self, peer: NodeId, address: &Address, refusal: Refusal) {
        (**self).met_stranger(peer, address, refusal);
    }

    fn takes_operators(&self) -> bool {
        (**self).takes_operators()
    }

    fn receive(&self, talk: Talk) {
        (**self).receive(talk);
    }
}

/// Nobody hears of the meeting, whose digest serves visitors too.
pub(super) struct Unattended(pub(super) u64);

impl Attendant for Unattended {
    fn visitors_digest(&self) -> u64 {
        self.0
    }

    fn waits_for(&self, _: &[NodeId]) {}
}
