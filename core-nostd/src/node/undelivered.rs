//! From a view to the next: the own messages that the old view ended without (VIE-7).
//!
//! They are the messages that the trim dropped, then those that were never sent, in their order;
//! then those that are still being built, whenever that ends. Until all of them are carried over,
//! nothing else may enter the next view's ring: the next view's outbox is handed out only then, so
//! that the messages of each thread keep their order.
//!
//! A reservation that was dropped is carried over as a dropped one: so the `n`-th undelivered
//! message is the `n`-th of the next view's ring.

use super::Node;
use crate::ids::{Position, SubgroupId};
use crate::smc::{Outbox, Reservation, ReserveError, RingCursor, SlotLength};

/// One undelivered message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum UndeliveredMessage<'m> {
    /// It is whole.
    Message(&'m [u8]),
    /// It is a large one, whose blocks have to go again; this describes it (RDM-7).
    Large(&'m [u8]),
    /// Its reservation was dropped: nothing is to be sent.
    Dropped,
    /// Its reservation has not ended: ask again later.
    Building,
}

/// Where the undelivered own messages of one subgroup stand in its ring. Made by
/// [`Node::undelivered`]. Plain numbers: every call is given the outbox of the ended view, whose
/// memory may outlive its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Undelivered {
    at: RingCursor,
    end: Position,
    /// Positions below this were sent: their reservations have ended, and their flags may speak for
    /// later ones.
    sent: Position,
    window: u32,
}

impl Node<'_> {
    /// Closes the own outbox of a subgroup, and gives what this view ended without there; nothing
    /// if this node does not send in it. Call it once, when the status is final.
    #[must_use]
    pub fn undelivered(&self, subgroup: SubgroupId) -> Option<Undelivered> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let own = state.own.as_ref()?;
        let sender = state.senders.of(self.senders)?.get(own.rank.index())?;
        let end = self.outbox(subgroup)?.handoff().close();
        Some(Undelivered { at: sender.hand, end, sent: sender.take.position, window: state.window })
    }
}

impl Undelivered {
    /// The position, in the old view, of the next undelivered message.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.at.position
    }

    /// Whether that message was sent in the old view: members that did not go on may have delivered
    /// it.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.at.position < self.sent
    }

    /// The next message; nothing once there is none. [`UndeliveredMessage::Building`] for ever, if
    /// `from` is another outbox than the one that [`Node::undelivered`] closed.
    #[must_use]
    pub fn get<'m>(&self, from: &Outbox<'m>) -> Option<UndeliveredMessage<'m>> {
        if self.at.position >= self.end {
            return None;
        }
        let (ring, handoff) = (from.ring().reader(), from.handoff());
        // A slot whose reservation has ended is not built in, once no further lap can begin. The
        // outbox of another view than that of these messages may be open, or not be so far.
        let laps_end = self.end.0.saturating_sub(self.at.position.0) <= u64::from(ring.slots());
        let is_of_these = handoff.is_closed_at(self.end) && ring.slots() == self.window && laps_end;
        if !is_of_these || handoff.outcome(self.at.position, self.at.slot).is_none() {
            return Some(UndeliveredMessage::Building);
        }
        Some(match SlotLength::decode(ring.length(self.at.slot)) {
            SlotLength::Message(length) => {
                UndeliveredMessage::Message(ring.payload(self.at.slot, length))
            }
            SlotLength::Large(length) => {
                UndeliveredMessage::Large(ring.payload(self.at.slot, length))
            }
            SlotLength::Null => UndeliveredMessage::Dropped,
        })
    }

    /// Passes over the next message.
    pub fn pass(&mut self) {
        if self.at.position < self.end {
            self.at = self.at.next(self.window);
        }
    }

    /// Carries over as much as possible now: at most one window. `from` is the outbox of the view
    /// that ended, `into` that of the next view, which nothing else uses yet. True once nothing is
    /// left; false while a reservation is still being built.
    ///
    /// # Errors
    /// The next view's ring has fewer slots, or smaller ones.
    pub fn carry(&mut self, from: &Outbox<'_>, into: &Outbox<'_>) -> Result<bool, ReserveError> {
        let mut carried = 0_u32;
        // bound: a window
        while carried < self.window {
            match self.get(from) {
                None => return Ok(true),
                Some(UndeliveredMessage::Building) => return Ok(false),
                Some(UndeliveredMessage::Dropped) => drop(into.reserve(0)?),
                Some(UndeliveredMessage::Message(payload)) => copied(into, payload)?.commit(),
                Some(UndeliveredMessage::Large(payload)) => copied(into, payload)?.commit_large(),
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
    // bound: the bytes of a slot
    for (to, from) in copy.payload().iter_mut().zip(payload) {
        *to = *from;
    }
    Ok(copy)
}
