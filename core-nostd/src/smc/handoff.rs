//! The lock-free hand-off from application threads to the step (SMC-3).
//!
//! The hand-off has three kinds of private cells. Application threads advance `reserved` by
//! compare-and-swap, never past `limit`. Only the step advances `limit`, when slots become free
//! (SMC-2). Each slot has a ready flag that the holder of its reservation sets and the step reads.
//!
//! A ready flag is never cleared: it contains the position that it refers to, so a flag from an
//! old lap does not match. The step never writes to a flag.
//!
//! Order: a flag is stored with release ordering after the message has been built, and loaded with
//! acquire ordering before the message is published. `limit` is stored with release ordering after
//! the peers' frontiers have been seen, and loaded with acquire ordering before a message is built
//! in the slot. `loom` searches the interleavings (`tests/loom_handoff.rs`).

use core::num::NonZeroU64;

use crate::ids::{Position, Slot, index_from_u32, u64_from_index};
use crate::sync::{AtomicU64, Ordering};

/// Number of attempts for a reservation that loses to other threads. Each loss is another thread's
/// success, so a refusal requires that many other senders at the same instant.
const ATTEMPTS: u32 = 64;

/// Flag that is set in `reserved` once nothing more may be reserved. No position is this high, so
/// no limit is above it.
const CLOSED: u64 = 1 << 63;

/// Alignment that puts cells written by different threads on separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// The cells of one outbox that are not per slot.
#[derive(Debug)]
pub struct HandOffCells {
    /// Position below which all positions are reserved.
    reserved: Apart<AtomicU64>,
    /// Position below which positions may be reserved.
    limit: Apart<AtomicU64>,
    /// Number of requested rounds of silence that the step has not taken up yet (NUL-5).
    silence: AtomicU64,
    /// Position at which the silence begins; messages reserved before it must still be sent.
    silence_from: AtomicU64,
}

impl HandOffCells {
    /// Creates the cells of an outbox. No reservation can be made until a node opens it.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            reserved: Apart(AtomicU64::new(0)),
            limit: Apart(AtomicU64::new(0)),
            silence: AtomicU64::new(0),
            silence_from: AtomicU64::new(0),
        }
    }

    /// Creates the cells of an outbox. No reservation can be made until a node opens it.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self {
            reserved: Apart(AtomicU64::new(0)),
            limit: Apart(AtomicU64::new(0)),
            silence: AtomicU64::new(0),
            silence_from: AtomicU64::new(0),
        }
    }
}

impl HandOffCells {
    /// Returns whether no application thread has asked for anything since everything below
    /// `position` was sent: nothing more is reserved, and no silence is declared.
    ///
    /// A reservation that is seen too late is only sent later: a thread that rings for a sleeping
    /// node has made its reservation before.
    #[inline]
    pub(crate) fn is_at(&self, position: Position) -> bool {
        self.reserved.0.load(Ordering::Relaxed) == position.0
            && self.silence.load(Ordering::Relaxed) == 0
    }
}

impl Default for HandOffCells {
    fn default() -> Self {
        Self::new()
    }
}

/// The private flag of a slot: the position whose reservation has ended, and its outcome.
#[derive(Debug)]
#[repr(transparent)]
pub struct ReadyFlag(AtomicU64);

impl ReadyFlag {
    /// Creates a flag for which no reservation has ended yet.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Creates a flag for which no reservation has ended yet.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Default for ReadyFlag {
    fn default() -> Self {
        Self::new()
    }
}

/// The outcome of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// A message was built and will be sent.
    Message,
    /// The reservation was dropped; its slot is sent as a null.
    Dropped,
}

/// Reason why a reservation is refused now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// All slots are in use.
    Full,
    /// Too many other threads were reserving at the same moment.
    Contended,
}

/// The hand-off of one outbox. Copies share the cells.
#[derive(Clone, Copy, Debug)]
pub struct HandOff<'m> {
    cells: &'m HandOffCells,
    ready: &'m [ReadyFlag],
    window: NonZeroU64,
}

static_assertions::assert_impl_all!(HandOff<'static>: Send, Sync, Copy);

/// Declares a method that is private to the core but public for the search of interleavings. If the
/// method were always public, safe code could declare a slot free while a reservation builds in it.
macro_rules! own {
    ($(#[$attribute:meta])* fn $($method:tt)*) => {
        #[cfg(not(loom))]
        $(#[$attribute])* pub(crate) fn $($method)*
        #[cfg(loom)]
        $(#[$attribute])* pub fn $($method)*
    };
}

impl ReadyFlag {
    own! {
        /// Ends the reservation of a position.
        #[inline]
        fn set(&self, position: Position, outcome: Outcome) {
            self.0.store(stamp(position, outcome), Ordering::Release);
        }
    }
}

impl<'m> HandOff<'m> {
    own! {
        /// Creates a hand-off over its cells; `ready` has one flag per slot. Returns `None` if
        /// `ready` is empty.
        #[must_use]
        fn new(cells: &'m HandOffCells, ready: &'m [ReadyFlag]) -> Option<Self> {
            let window = NonZeroU64::new(u64_from_index(ready.len()))?;
            Some(Self { cells, ready, window })
        }
    }

    own! {
        /// Reserves the next positions, at least one and at most `most`. Returns the first of these
        /// positions and their number. Lock-free and bounded.
        ///
        /// # Errors
        /// Fails if no slot is free, or if too many threads reserve at once.
        #[inline]
        fn reserve(&self, most: u32) -> Result<(Position, u32), Refusal> {
            let mut position = self.cells.reserved.0.load(Ordering::Relaxed);
            let mut attempts = 0_u32;
            // bound: ATTEMPTS
            while attempts < ATTEMPTS {
                let free = self.cells.limit.0.load(Ordering::Acquire).saturating_sub(position);
                // The number of free slots is at most a window, so it always fits in 32 bits.
                let count = most.max(1).min(u32::try_from(free).unwrap_or(u32::MAX));
                if count == 0 {
                    return Err(Refusal::Full);
                }
                match self.cells.reserved.0.compare_exchange_weak(
                    position,
                    position.saturating_add(u64::from(count)),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => return Ok((Position(position), count)),
                    Err(current) => position = current,
                }
                attempts = attempts.saturating_add(1);
            }
            Err(Refusal::Contended)
        }
    }

    own! {
        /// Returns the slot of a position.
        #[inline]
        #[must_use]
        fn slot_of(&self, position: Position) -> Slot {
            let slot = position.0 % self.window;
            Slot(u32::try_from(slot).unwrap_or(0))
        }
    }

    own! {
        /// Returns the flag of a slot, with which its reservation ends.
        #[inline]
        #[must_use]
        fn flag(&self, slot: Slot) -> Option<&'m ReadyFlag> {
            self.ready.get(index_from_u32(slot.0))
        }
    }

    own! {
        /// Returns the outcome of a position's reservation, if it has ended.
        #[inline]
        #[must_use]
        fn outcome(&self, position: Position, slot: Slot) -> Option<Outcome> {
            let flag = self.ready.get(index_from_u32(slot.0))?.0.load(Ordering::Acquire);
            match flag.wrapping_sub(stamp(position, Outcome::Message)) {
                0 => Some(Outcome::Message),
                1 => Some(Outcome::Dropped),
                _ => None,
            }
        }
    }

    own! {
        /// Returns a position below which all positions were reserved at some moment before the
        /// call.
        #[inline]
        #[must_use]
        fn reserved(&self) -> Position {
            Position(self.cells.reserved.0.load(Ordering::Relaxed) & !CLOSED)
        }
    }

    own! {
        #[cfg(any(feature = "views", loom))]
        /// Returns whether [`HandOff::close`] was called when exactly the positions below `end`
        /// were reserved.
        fn is_closed_at(&self, end: Position) -> bool {
            self.cells.reserved.0.load(Ordering::Relaxed) == end.0 | CLOSED
        }
    }

    own! {
        #[cfg(any(feature = "views", loom))]
        /// Refuses every further reservation, as if all slots were in use. All positions below the
        /// returned one have been reserved, but no others: a reservation either precedes the close
        /// or is refused (VIE-7).
        fn close(&self) -> Position {
            Position(self.cells.reserved.0.fetch_or(CLOSED, Ordering::Relaxed) & !CLOSED)
        }
    }

    own! {
        /// Allows reservations of positions below `limit`. Only the step may call this.
        #[inline]
        fn set_limit(&self, limit: Position) {
            self.cells.limit.0.store(limit.0, Ordering::Release);
        }
    }

    own! {
        /// Declares that this sender will be silent for `rounds` rounds, or until its next message
        /// (NUL-5). Messages that are already reserved precede the silence.
        fn declare_silence(&self, rounds: u64) {
            self.cells.silence_from.store(self.reserved().0, Ordering::Relaxed);
            self.cells.silence.store(rounds, Ordering::Release);
        }
    }

    own! {
        /// Takes the rounds of silence that begin at `position`, if any were declared. A silence
        /// that begins later is kept; a silence that a message has ended is discarded. Only the
        /// step may call this.
        #[inline]
        fn take_silence(&self, position: Position) -> u64 {
            let rounds = self.cells.silence.load(Ordering::Acquire);
            if rounds == 0 {
                return 0;
            }
            let from = self.cells.silence_from.load(Ordering::Relaxed);
            if from > position.0 {
                return 0;
            }
            self.cells.silence.store(0, Ordering::Relaxed);
            if from == position.0 { rounds } else { 0 }
        }
    }
}

/// Returns the ready flag's value for a position: never zero, and different for each position and
/// outcome.
#[inline]
const fn stamp(position: Position, outcome: Outcome) -> u64 {
    let twice = position.0.wrapping_mul(2);
    match outcome {
        Outcome::Message => twice.wrapping_add(1),
        Outcome::Dropped => twice.wrapping_add(2),
    }
}

/// The stamp of a dropped reservation follows that of its message, so one difference tells both.
const _: () = {
    let message = stamp(Position(5), Outcome::Message);
    assert!(stamp(Position(5), Outcome::Dropped) == message.wrapping_add(1));
};
