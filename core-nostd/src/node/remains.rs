//! From a view to the next: the own messages that the old one ended without (VIE-7).
//!
//! They are what the trim dropped, then what was never sent, in their order; then what is still being built, whenever
//! that ends. Until all of it is carried over, nothing else may enter the next view's ring: so the next view's outbox
//! is handed out only then, and each thread's messages keep their order.
//!
//! A reservation that was dropped is carried over too, as one that is dropped: so the message that was the `n`-th
//! after the first remaining one is the `n`-th of the next view's ring.

use super::Node;
use crate::ids::{Position, SubgroupId};
use crate::smc::{Outbox, Reservation, ReserveError, RingCursor, SlotLength};

/// One of the messages that remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remaining<'m> {
    /// It is whole.
    Message(&'m [u8]),
    /// It is a large one, whose blocks have to go again; this describes it (RDM-7).
    Large(&'m [u8]),
    /// Its reservation was dropped: nothing is to be sent.
    Dropped,
    /// Its reservation has not ended: ask again later.
    Building,
}

/// Where the own messages of one subgroup that a view ended without stand in its ring. Made by [`Node::remains`]. Plain
/// numbers: every call is given the outbox of the ended view, whose memory may outlive its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remains {
    at: RingCursor,
    end: Position,
    /// Positions below this were sent: their reservations have ended, and their flags may speak for later ones.
    sent: Position,
    window: u32,
}

impl Node<'_> {
    /// Closes the own outbox of a subgroup, and gives what this view ended without there; nothing if this node does not
    /// send in it. Call it once, when the status is final.
    #[must_use]
    pub fn remains(&self, subgroup: SubgroupId) -> Option<Remains> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let own = state.own.as_ref()?;
        let sender = state.senders.of(self.senders)?.get(own.rank.index())?;
        let end = self.outbox(subgroup)?.handoff().close();
        Some(Remains { at: sender.hand, end, sent: sender.take.position, window: state.window })
    }

    /// How many of the own messages in a subgroup were delivered here, those that were dropped counted too; and so are
    /// stable. Nothing if this node does not send in it.
    #[must_use]
    pub fn own_delivered(&self, subgroup: SubgroupId) -> Option<Position> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let own = state.own.as_ref()?;
        Some(state.senders.of(self.senders)?.get(own.rank.index())?.hand.position)
    }

    /// How many of the own messages in a subgroup were delivered everywhere, as far as is known here: the sender's copies of large
    /// ones are not needed any more (RDM-7). Nothing if this node does not send in it.
    #[must_use]
    pub fn own_delivered_everywhere(&self, subgroup: SubgroupId) -> Option<Position> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        Some(state.own.as_ref()?.freed.position)
    }
}

impl Remains {
    /// The position, in the old view, of the next message that remains.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.at.position
    }

    /// Whether that message was sent in the old view: members that did not go on may have delivered it.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.at.position < self.sent
    }

    /// The next message; nothing once there is none. One that is being built for ever, if `from` is another outbox than the
    /// one that [`Node::remains`] closed.
    #[must_use]
    pub fn get<'m>(&self, from: &Outbox<'m>) -> Option<Remaining<'m>> {
        if self.at.position >= self.end {
            return None;
        }
        let (ring, handoff) = (from.ring().reader(), from.handoff());
        // Nobody builds in a slot whose reservation has ended, once no further lap can begin. Another view's outbox than that
        // of these remains may be open, or not be so far.
        let laps_end = self.end.0.saturating_sub(self.at.position.0) <= u64::from(ring.slots());
        let is_of_these = handoff.is_closed_at(self.end) && ring.slots() == self.window && laps_end;
        if !is_of_these || handoff.outcome(self.at.position, self.at.slot).is_none() {
            return Some(Remaining::Building);
        }
        Some(match SlotLength::decode(ring.length(self.at.slot)) {
            SlotLength::Message(length) => Remaining::Message(ring.payload(self.at.slot, length)),
            SlotLength::Large(length) => Remaining::Large(ring.payload(self.at.slot, length)),
            SlotLength::Null => Remaining::Dropped,
        })
    }

    /// Passes over the next message.
    pub fn pass(&mut self) {
        if self.at.position < self.end {
            self.at = self.at.next(self.window);
        }
    }

    /// Carries over as much as can be now: at most one window. `from` is the outbox of the view that ended, `into` that of
    /// the next view, which nobody else uses yet. True once nothing remains; false while a reservation is still being built.
    ///
    /// # Errors
    /// The next view's ring has fewer slots, or smaller ones.
    pub fn carry(&mut self, from: &Outbox<'_>, into: &Outbox<'_>) -> Result<bool, ReserveError> {
        let mut carried = 0_u32;
        while carried < self.window {
            match self.get(from) {
                None => return Ok(true),
                Some(Remaining::Building) => return Ok(false),
                Some(Remaining::Dropped) => drop(into.reserve(0)?),
                Some(Remaining::Message(payload)) => copied(into, payload)?.commit(),
                Some(Remaining::Large(payload)) => copied(into, payload)?.commit_large(),
            }
            self.pass();
            carried = carried.saturating_add(1);
        }
        Ok(self.get(from).is_none())
    }
}

/// A slot of the next view with the same bytes.
fn copied<'m>(into: &Outbox<'m>, payload: &[u8]) -> Result<Reservation<'m>, ReserveError> {
    let mut copy = into.reserve(payload.len())?;
    for (to, from) in copy.payload().iter_mut().zip(payload) {
        *to = *from;
    }
    Ok(copy)
}
