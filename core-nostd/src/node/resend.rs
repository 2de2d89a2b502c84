//! From a view to the next: the own messages that the old one ended without.

use super::Node;
use crate::ids::{SubgroupId, index_from_u32};
use crate::smc::{LENGTH_OF_NULL, Outbox, Outcome, Reservation, ReserveError};

impl Node<'_> {
    /// Sends again in the next view what this one ended without (VIE-7): the own messages of a subgroup that the
    /// trim dropped, then those that were ready and never sent, in their order. `into` is the sending end in the
    /// next view, which nobody else has used yet. Returns how many there were.
    ///
    /// Call it once, when the status is [`Installed`](crate::view::Status::Installed). A reservation that is still being built ends the
    /// list: what it and later ones hold stays in the old memory.
    ///
    /// # Errors
    /// The next view's ring has fewer slots, or smaller ones.
    pub fn resend(&self, subgroup: SubgroupId, into: &Outbox<'_>) -> Result<u32, ReserveError> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup);
        let found = state.and_then(|state| {
            let own = state.own.as_ref()?;
            let sender = state.senders.of(self.senders)?.get(own.rank.index())?;
            Some((state.window, sender, self.outbox(subgroup)?))
        });
        let Some((window, sender, outbox)) = found else { return Ok(0) };
        let ring = outbox.ring().reader();
        let (mut at, mut sent, mut looked) = (sender.hand, 0_u32, 0_u32);
        while looked < window {
            let published = at.position < sender.take.position;
            let ready = outbox.handoff().outcome(at.position, at.slot) == Some(Outcome::Message);
            let dropped = outbox.handoff().outcome(at.position, at.slot) == Some(Outcome::Dropped);
            if !published && !ready && !dropped {
                break;
            }
            let length = ring.length(at.slot);
            if length != LENGTH_OF_NULL && !dropped {
                let payload = ring.payload(at.slot, length);
                let mut copy: Reservation<'_> = into.reserve(index_from_u32(length))?;
                for (to, from) in copy.payload().iter_mut().zip(payload) {
                    *to = *from;
                }
                copy.commit();
                sent = sent.saturating_add(1);
            }
            at = at.next(window);
            looked = looked.saturating_add(1);
        }
        Ok(sent)
    }
}
