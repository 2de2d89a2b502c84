//! Small-message multicast (SMC): a ring of slots in each sender's row (Spindle II-C; SMC-1 to
//! SMC-6).
//!
//! | file | what it holds |
//! |---|---|
//! | `counter` | what a slot's counter says, as one number |
//! | `cursor` | a place in a ring: position and slot, moved together |
//! | `handoff` | from application threads to the step: reserve, ready, without a lock |
//! | `length` | what a slot's length says |
//! | `outbox` | the same with the ring: reserve, build in place, commit |

mod counter;
mod cursor;
mod handoff;
mod length;
mod outbox;

pub use counter::SlotCounter;
pub use cursor::RingCursor;
#[cfg(not(loom))]
pub(crate) use handoff::HandOff;
pub use handoff::{HandOffCells, ReadyFlag};
// The search of interleavings drives the hand-off directly. No other code may decide which slots
// are free.
#[cfg(loom)]
pub use handoff::{HandOff, Outcome, Refusal};
pub(crate) use length::SlotLength;
pub use outbox::{Outbox, Reservation, ReserveError, ReservedRun};
