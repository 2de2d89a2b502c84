//! Where a member's messages of one subgroup start: reserve a slot, build in it, commit.

use super::LENGTH_OF_NULL;
use super::handoff::{HandOff, HandOffCells, Outcome, ReadyFlag, Refusal};
use crate::ids::{Position, Slot, index_from_u32};
use crate::layout::RingShape;
use crate::memory::{OutOfRow, OwnRing, RingPlace, RowWriter};

/// Why there is no reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ReserveError {
    /// No slot is free now (SMC-2). Step the node, or wait.
    Full,
    /// Too many threads reserved at this very moment. Try again.
    Contended,
    /// The message is larger than a slot takes (SMC-4).
    TooLarge {
        /// Bytes asked for.
        length: usize,
        /// Bytes that a slot takes.
        limit: u32,
    },
}

impl core::fmt::Display for ReserveError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Full => out.write_str("no slot is free now"),
            Self::Contended => out.write_str("too many threads reserve at once"),
            Self::TooLarge { length, limit } => {
                write!(out, "a message of {length} bytes does not fit a slot of {limit}")
            }
        }
    }
}

impl core::error::Error for ReserveError {}

/// The sending end of one subgroup at one member. Copies share it; any thread may use one.
#[derive(Clone, Copy, Debug)]
pub struct Outbox<'m> {
    handoff: HandOff<'m>,
    ring: OwnRing<'m>,
}

static_assertions::assert_impl_all!(Outbox<'static>: Send, Sync, Copy);

impl<'m> Outbox<'m> {
    /// An outbox over the ring of that shape in the own row; `ready` has one flag a slot.
    ///
    /// # Errors
    /// If the ring is not inside the row, or `ready` has another number of flags than it has slots.
    pub fn new(
        row: RowWriter<'m>,
        shape: &RingShape,
        cells: &'m HandOffCells,
        ready: &'m [ReadyFlag],
    ) -> Result<Self, OutOfRow> {
        Self::at(row, &RingPlace::new(shape)?, cells, ready)
    }

    /// As [`Outbox::new`], at a place that was checked before.
    ///
    /// # Errors
    /// As [`Outbox::new`].
    #[inline]
    pub fn at(
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

    /// Takes a slot for a message of `length` bytes. Lock-free, and bounded.
    ///
    /// # Errors
    /// See [`ReserveError`]; only `TooLarge` is final.
    #[inline]
    pub fn reserve(&self, length: usize) -> Result<Reservation<'m>, ReserveError> {
        let limit = self.ring.reader().capacity();
        let fitting = match u32::try_from(length) {
            Ok(fitting) if fitting <= limit => fitting,
            _ => return Err(ReserveError::TooLarge { length, limit }),
        };
        let position = match self.handoff.reserve() {
            Ok(position) => position,
            Err(Refusal::Full) => return Err(ReserveError::Full),
            Err(Refusal::Contended) => return Err(ReserveError::Contended),
        };
        let slot = self.handoff.slot_of(position);
        Ok(Reservation { outbox: *self, position, slot, length: fitting })
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

/// A slot that is being built in. Committing sends it; dropping it sends a null in its place (SMC-3).
///
/// A reservation that lives on holds back later messages of its own ring, and nothing else.
#[derive(Debug)]
pub struct Reservation<'m> {
    outbox: Outbox<'m>,
    position: Position,
    slot: Slot,
    length: u32,
}

impl Reservation<'_> {
    /// The message to be built: `length` bytes, holding whatever an earlier message left there.
    #[inline]
    #[must_use]
    pub fn payload(&mut self) -> &mut [u8] {
        self.outbox.ring.payload_mut(self.slot, self.length)
    }

    /// How many messages of this outbox were reserved before this one.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// Makes the message shorter. A length above the present one changes nothing.
    pub fn truncate(&mut self, length: usize) {
        if let Ok(length) = u32::try_from(length) {
            self.length = self.length.min(length);
        }
    }

    /// Hands the message to the next step.
    #[inline]
    pub fn commit(self) {
        self.outbox.ring.set_length(self.slot, self.length);
        self.outbox.handoff.finish(self.position, self.slot, Outcome::Message);
        core::mem::forget(self);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.outbox.ring.set_length(self.slot, LENGTH_OF_NULL);
        self.outbox.handoff.finish(self.position, self.slot, Outcome::Dropped);
    }
}
