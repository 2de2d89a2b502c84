//! The sending side of a subgroup: an application reserves a slot, builds its message there, and
//! commits it.

use super::handoff::{HandOff, HandOffCells, Outcome, ReadyFlag, Refusal};
use super::length::SlotLength;
use crate::ids::{Position, index_from_u32};
use crate::layout::RingShape;
use crate::memory::{HERE, NodeMemory, OutOfRow, OwnRing, OwnWalk, RingPlace, RowWriter};

/// Reason why a reservation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ReserveError {
    /// No slot is free now (SMC-2). Step the node or wait.
    Full,
    /// Too many threads were reserving at the same moment. Retry.
    Contended,
    /// The message does not fit in a slot (SMC-4).
    TooLarge {
        /// Requested bytes.
        length: usize,
        /// Capacity of a slot, in bytes.
        limit: u32,
    },
}

impl core::fmt::Display for ReserveError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Full => out.write_str("no slot is free now; step the node or wait"),
            Self::Contended => out.write_str("too many threads reserve at once; try again"),
            Self::TooLarge { length, limit } => {
                write!(out, "a message of {length} bytes does not fit in a slot of {limit} bytes")
            }
        }
    }
}

impl core::error::Error for ReserveError {}

/// The sending side of one subgroup at one member. Copies share it, and any thread may use a copy.
#[derive(Clone, Copy, Debug)]
pub struct Outbox<'m> {
    handoff: HandOff<'m>,
    ring: OwnRing<'m>,
}

static_assertions::assert_impl_all!(Outbox<'static>: Send, Sync, Copy);

impl<'m> Outbox<'m> {
    /// Creates the outbox of one subgroup when its [node](crate::node::Node::outbox) is not
    /// available. `memory` must contain only that subgroup's hand-off, and `shape` must be the
    /// shape of the subgroup's ring in the local row.
    ///
    /// # Errors
    /// Fails if the ring is not inside the row, if there is not exactly one hand-off, or if there
    /// is not one flag per slot.
    pub fn new(memory: NodeMemory<'m>, shape: &RingShape) -> Result<Self, OutOfRow> {
        match memory.cells {
            [cells] => Self::at(memory.row, &RingPlace::new(shape)?, cells, memory.ready),
            _ => Err(OutOfRow),
        }
    }

    /// Creates the outbox over a ring whose position has already been checked; `ready` has one flag
    /// per slot.
    ///
    /// # Errors
    /// Fails as [`Outbox::new`] does.
    #[inline]
    pub(crate) fn at(
        row: RowWriter<'m>,
        place: &RingPlace,
        cells: &'m HandOffCells,
        ready: &'m [ReadyFlag],
    ) -> Result<Self, OutOfRow> {
        let ring = row.ring_at(place)?;
        if ready.len() != index_from_u32(ring.reader().slots()) {
            return Err(OutOfRow);
        }
        let handoff = HandOff::new(cells, ready).ok_or(OutOfRow)?;
        Ok(Self { handoff, ring })
    }

    /// Reserves a slot for a message of `length` bytes. Lock-free and bounded.
    ///
    /// # Errors
    /// Fails as described at [`ReserveError`]. Only `TooLarge` is final.
    #[inline]
    pub fn reserve(&self, length: usize) -> Result<Reservation<'m>, ReserveError> {
        let length = self.fitting(length)?;
        let (position, _) = self.handoff.reserve(1)?;
        let slot = self.handoff.slot_of(position);
        let ring = self.ring.walk(slot).here();
        Ok(Reservation { ready: self.handoff.flag(slot), ring, position, length })
    }

    /// Reserves up to `most` consecutive slots with one compare-and-swap, for a burst of messages.
    ///
    /// A compare-and-swap waits until all earlier stores of its processor have reached the cache,
    /// and stores to slots that peers have read are slow. With one compare-and-swap per message,
    /// the stores of two messages would never overlap.
    ///
    /// # Errors
    /// Fails with [`ReserveError::Full`] or [`ReserveError::Contended`].
    #[inline]
    pub fn reserve_run(&self, most: u32) -> Result<ReservedRun<'m>, ReserveError> {
        let (position, left) = self.handoff.reserve(most)?;
        let next = self.ring.walk(self.handoff.slot_of(position));
        Ok(ReservedRun { outbox: *self, position, next, left })
    }

    #[inline(always)]
    fn fitting(&self, length: usize) -> Result<u32, ReserveError> {
        let limit = self.ring.reader().capacity();
        match u32::try_from(length) {
            Ok(fitting) if fitting <= limit => Ok(fitting),
            _ => Err(ReserveError::TooLarge { length, limit }),
        }
    }

    /// Returns a position below which all positions were reserved at some moment before the call.
    #[must_use]
    pub fn reserved(&self) -> Position {
        self.handoff.reserved()
    }

    /// Declares silence for up to `rounds` rounds; it ends with the next message (NUL-5).
    pub fn declare_silence(&self, rounds: u64) {
        self.handoff.declare_silence(rounds);
    }

    pub(crate) const fn handoff(&self) -> HandOff<'m> {
        self.handoff
    }

    pub(crate) const fn ring(&self) -> OwnRing<'m> {
        self.ring
    }
}

/// Consecutive slots that have been reserved but not handed out yet. Dropping the run sends its
/// remaining slots as nulls, so reserve no more than you will use.
#[derive(Debug)]
pub struct ReservedRun<'m> {
    outbox: Outbox<'m>,
    /// The next position and its slot.
    position: Position,
    next: OwnWalk<'m>,
    left: u32,
}

impl<'m> ReservedRun<'m> {
    /// Returns the number of slots left.
    #[must_use]
    pub const fn left(&self) -> u32 {
        self.left
    }

    /// Returns the next slot, for a message of `length` bytes, or `None` if all slots have been
    /// handed out.
    ///
    /// # Errors
    /// Fails with [`ReserveError::TooLarge`]; the slot stays in the run.
    #[inline(always)]
    pub fn next(&mut self, length: usize) -> Result<Option<Reservation<'m>>, ReserveError> {
        let length = self.outbox.fitting(length)?;
        if self.left == 0 {
            return Ok(None);
        }
        Ok(Some(self.hand_out(length)))
    }

    #[inline(always)]
    fn hand_out(&mut self, length: u32) -> Reservation<'m> {
        let (position, ring) = (self.position, self.next.here());
        let ready = self.outbox.handoff.flag(self.next.slot());
        self.position = Position(position.0.wrapping_add(1));
        self.next.advance();
        self.left = self.left.saturating_sub(1);
        #[cfg(feature = "prefetch")]
        if self.left > 0 {
            self.next.here().ask_ahead(HERE, length);
        }
        Reservation { ready, ring, position, length }
    }
}

impl Drop for ReservedRun<'_> {
    fn drop(&mut self) {
        // bound: the reserved slots, at most a window
        while self.left > 0 {
            drop(self.hand_out(0));
        }
    }
}

impl From<Refusal> for ReserveError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => Self::Full,
            Refusal::Contended => Self::Contended,
        }
    }
}

/// A slot in which a message is being built. Committing sends it; dropping it sends a null instead
/// (SMC-3).
///
/// An open reservation holds back later messages of its own ring, but nothing else.
#[derive(Debug)]
pub struct Reservation<'m> {
    /// The slot's flag, which exists for each slot.
    ready: Option<&'m ReadyFlag>,
    /// The slot, as a ring of one slot.
    ring: OwnRing<'m>,
    position: Position,
    length: u32,
}

impl Reservation<'_> {
    /// Returns the message to build. Its `length` bytes initially hold the leftovers of an earlier
    /// message.
    #[inline(always)]
    #[must_use]
    pub fn payload(&mut self) -> &mut [u8] {
        self.ring.payload_mut(HERE, self.length)
    }

    /// Returns the number of messages of this outbox that were reserved before this one.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// Shortens the message to its first `length` bytes. A length that is not below the current one
    /// changes nothing.
    ///
    /// The remaining bytes are copied towards the end of the slot (SMC-7), so a reservation of the
    /// right length is cheaper.
    pub fn truncate(&mut self, length: usize) {
        match u32::try_from(length) {
            Ok(length) if length < self.length => {
                self.ring.shorten(HERE, self.length, length);
                self.length = length;
            }
            _ => {}
        }
    }

    /// Hands the message to the next step.
    #[inline(always)]
    pub fn commit(self) {
        let length = SlotLength::Message(self.length);
        self.hand_over(length);
    }

    /// Commits a large message: its bytes are sent by block multicast, and the slot contains its
    /// descriptor. The message is received once its blocks have been received (RDM-7). This is
    /// allowed only in a subgroup that was laid out for large messages; in other subgroups, the
    /// members treat this sender as misbehaving.
    pub fn commit_large(self) {
        let length = SlotLength::Large(self.length);
        self.hand_over(length);
    }

    #[inline(always)]
    fn end(&self, length: SlotLength, outcome: Outcome) {
        self.ring.finish(HERE, self.position, length.encode());
        if let Some(ready) = self.ready {
            ready.set(self.position, outcome);
        }
    }

    #[inline(always)]
    fn hand_over(self, length: SlotLength) {
        self.end(length, Outcome::Message);
        core::mem::forget(self);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.end(SlotLength::Null, Outcome::Dropped);
    }
}
