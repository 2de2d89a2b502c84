//! Carrying of a member's undelivered messages from the old view to the next (VIE-7).
//!
//! The undelivered messages, in order, are those that the trim dropped and those that were never
//! sent, followed by those that are still being built, whenever their building ends. Until all of
//! them have been carried over, nothing else may enter the next view's ring. The next view's outbox
//! is handed out only then, so that the messages of each thread keep their order.
//!
//! A dropped reservation is carried over as a dropped reservation, so the `n`-th undelivered
//! message is the `n`-th in the next view's ring.

use super::Node;
use crate::ids::{Position, SubgroupId};
use crate::smc::{Outbox, Reservation, ReserveError, RingCursor, SlotLength};

/// One undelivered message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum UndeliveredMessage<'m> {
    /// A complete message.
    Message(&'m [u8]),
    /// Descriptor of a large message, whose blocks must be resent (RDM-7).
    Large(&'m [u8]),
    /// The reservation was dropped, so there is nothing to send.
    Dropped,
    /// The reservation has not ended: retry later.
    Building,
}

/// The position of a subgroup's undelivered local messages in its ring, returned by
/// [`Node::undelivered`]. It holds only numbers; every call therefore takes the outbox of the ended
/// view, whose memory may outlive the view's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Undelivered {
    at: RingCursor,
    end: Position,
    /// Positions below this were sent: their reservations have ended, and their flags may already
    /// belong to later reservations.
    sent: Position,
    window: u32,
}

impl Node<'_> {
    /// Closes this node's outbox in a subgroup, and returns the messages that had not been
    /// delivered when the view ended. Returns `None` if this node does not send in the subgroup.
    /// Call it once, when the status is final.
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
    /// Returns the position, in the old view, of the next undelivered message.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.at.position
    }

    /// Returns whether the next message was sent in the old view. Members that did not survive may
    /// have delivered it.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.at.position < self.sent
    }

    /// Returns the next message, or `None` after the last. If `from` is not the outbox that
    /// [`Node::undelivered`] closed, the result is always [`UndeliveredMessage::Building`].
    #[must_use]
    pub fn get<'m>(&self, from: &Outbox<'m>) -> Option<UndeliveredMessage<'m>> {
        if self.at.position >= self.end {
            return None;
        }
        let (ring, handoff) = (from.ring().reader(), from.handoff());
        // Once no further lap can begin, nothing is built in a slot whose reservation has ended.
        // `from` may be the outbox of another view, which may still be open or may not have come
        // this far.
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

    /// Skips the next message.
    pub fn pass(&mut self) {
        if self.at.position < self.end {
            self.at = self.at.next(self.window);
        }
    }

    /// Carries over as many messages as possible now: at most one window. `from` is the outbox of
    /// the view that ended, and `into` that of the next view, which must not be in use yet. Returns
    /// true once nothing is left, or false while a reservation is still being built.
    ///
    /// # Errors
    /// Fails if the next view's ring has fewer or smaller slots than needed.
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

/// Reserves a slot in the next view and copies the bytes into it.
fn copied<'m>(into: &Outbox<'m>, payload: &[u8]) -> Result<Reservation<'m>, ReserveError> {
    let mut copy = into.reserve(payload.len())?;
    // bound: the bytes of a slot
    for (to, from) in copy.payload().iter_mut().zip(payload) {
        *to = *from;
    }
    Ok(copy)
}
