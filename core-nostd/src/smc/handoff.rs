//! From application threads to the step, without a lock (SMC-3).
//!
//! Three kinds of private cells. Application threads move `reserved` by compare-and-swap, never
//! past `limit`; the step alone moves `limit`, when slots come free (SMC-2); and each slot has a
//! ready flag that its reservation's holder sets, and the step reads.
//!
//! A ready flag is never cleared: it carries the position that it speaks for, so an old lap's flag
//! is simply not the one that is looked for, and the step writes nothing that application threads
//! read.
//!
//! Order: a flag is stored with release after the message was built and loaded with acquire before
//! it is published; `limit` is stored with release after the peers' frontiers were seen and loaded
//! with acquire before a slot is built in. `loom` searches the interleavings
//! (`tests/loom_handoff.rs`).

use core::num::NonZeroU64;

use crate::ids::{Position, Slot, index_from_u32, u64_from_index};
use crate::sync::{AtomicU64, Ordering};

/// How often a reservation tries again after losing to another thread. Each loss is another's
/// success, so it takes that many other senders at the same instant to be refused.
const ATTEMPTS: u32 = 64;

/// Set in `reserved` once nothing more may be reserved: no position is so high, so no limit is
/// above it.
const CLOSED: u64 = 1 << 63;

/// Keeps what different threads write on lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// The cells of one outbox that are not per slot.
#[derive(Debug)]
pub struct HandOffCells {
    /// Positions below this are reserved.
    reserved: Apart<AtomicU64>,
    /// Positions below this may be reserved.
    limit: Apart<AtomicU64>,
    /// Rounds of silence asked for and not yet taken up by the step (NUL-5).
    silence: AtomicU64,
    /// The position from which they count: messages reserved before are still to be sent.
    silence_from: AtomicU64,
}

impl HandOffCells {
    /// Cells of an outbox from which no reservation can be made yet: a node opens it.
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

    /// Cells of an outbox from which no reservation can be made yet: a node opens it.
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

impl Default for HandOffCells {
    fn default() -> Self {
        Self::new()
    }
}

/// The private flag of a slot: which position's reservation ended, and how.
#[derive(Debug)]
#[repr(transparent)]
pub struct ReadyFlag(AtomicU64);

impl ReadyFlag {
    /// No reservation ended yet.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// No reservation ended yet.
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

/// What became of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// A message was built; it goes out.
    Message,
    /// It was dropped; its slot goes out as a null.
    Dropped,
}

/// Why there is no reservation to be had now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// All slots are in use.
    Full,
    /// Too many other threads reserved at this very moment.
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

/// A method of the core alone, which the search of interleavings calls too. If it were public, safe
/// code could say that a slot is free while a reservation builds in it.
macro_rules! own {
    ($(#[$attribute:meta])* fn $($method:tt)*) => {
        #[cfg(not(loom))]
        $(#[$attribute])* pub(crate) fn $($method)*
        #[cfg(loom)]
        $(#[$attribute])* pub fn $($method)*
    };
}

impl<'m> HandOff<'m> {
    own! {
        /// A hand-off over its cells; `ready` has one flag a slot. Nothing if it has none.
        #[must_use]
        fn new(cells: &'m HandOffCells, ready: &'m [ReadyFlag]) -> Option<Self> {
            let window = NonZeroU64::new(u64_from_index(ready.len()))?;
            Some(Self { cells, ready, window })
        }
    }

    own! {
        /// Takes the next positions, at least one and at most `most`: the first of them, and how
        /// many. Lock-free, and bounded.
        ///
        /// # Errors
        /// No slot is free, or too many threads at once.
        #[inline]
        fn reserve(&self, most: u32) -> Result<(Position, u32), Refusal> {
            let mut position = self.cells.reserved.0.load(Ordering::Relaxed);
            let mut attempts = 0_u32;
            // bound: ATTEMPTS
            while attempts < ATTEMPTS {
                let free = self.cells.limit.0.load(Ordering::Acquire).saturating_sub(position);
                // A free count above 32 bits cannot be: it is at most a window.
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
        /// The slot that a position falls on.
        #[inline]
        #[must_use]
        fn slot_of(&self, position: Position) -> Slot {
            let slot = position.0 % self.window;
            Slot(u32::try_from(slot).unwrap_or(0))
        }
    }

    own! {
        /// Ends a reservation.
        #[inline]
        fn finish(&self, position: Position, slot: Slot, outcome: Outcome) {
            if let Some(flag) = self.ready.get(index_from_u32(slot.0)) {
                flag.0.store(stamp(position, outcome), Ordering::Release);
            }
        }
    }

    own! {
        /// What became of a position's reservation, if it ended.
        #[inline]
        #[must_use]
        fn outcome(&self, position: Position, slot: Slot) -> Option<Outcome> {
            let flag = self.ready.get(index_from_u32(slot.0))?.0.load(Ordering::Acquire);
            if flag == stamp(position, Outcome::Message) {
                return Some(Outcome::Message);
            }
            if flag == stamp(position, Outcome::Dropped) { Some(Outcome::Dropped) } else { None }
        }
    }

    own! {
        /// Positions below this were reserved at some moment before the call.
        #[inline]
        #[must_use]
        fn reserved(&self) -> Position {
            Position(self.cells.reserved.0.load(Ordering::Relaxed) & !CLOSED)
        }
    }

    own! {
        #[cfg(any(feature = "views", loom))]
        /// Whether [`HandOff::close`] was called when positions below `end` were reserved.
        fn is_closed_at(&self, end: Position) -> bool {
            self.cells.reserved.0.load(Ordering::Relaxed) == end.0 | CLOSED
        }
    }

    own! {
        #[cfg(any(feature = "views", loom))]
        /// Refuses every reservation from now on, as if all slots were in use. Positions below the
        /// one that this returns were reserved, and none after it: a reservation comes before the
        /// close or is refused (VIE-7).
        fn close(&self) -> Position {
            Position(self.cells.reserved.0.fetch_or(CLOSED, Ordering::Relaxed) & !CLOSED)
        }
    }

    own! {
        /// Lets positions below `limit` be reserved. For the step alone.
        #[inline]
        fn set_limit(&self, limit: Position) {
            self.cells.limit.0.store(limit.0, Ordering::Release);
        }
    }

    own! {
        /// Declares that this sender will be silent for `rounds` rounds, or until its next message
        /// (NUL-5). Messages that are reserved already come before the silence.
        fn declare_silence(&self, rounds: u64) {
            self.cells.silence_from.store(self.reserved().0, Ordering::Relaxed);
            self.cells.silence.store(rounds, Ordering::Release);
        }
    }

    own! {
        /// The rounds of silence that begin at `position`, if any were declared. A silence that
        /// begins later stays; one that a message has ended is forgotten. For the step alone.
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

/// What a ready flag holds for a position: never zero, and different for each position and outcome.
#[inline]
const fn stamp(position: Position, outcome: Outcome) -> u64 {
    let twice = position.0.wrapping_mul(2);
    match outcome {
        Outcome::Message => twice.wrapping_add(1),
        Outcome::Dropped => twice.wrapping_add(2),
    }
}
