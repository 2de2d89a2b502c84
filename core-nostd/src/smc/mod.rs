//! Small-message multicast: a ring of slots in each sender's row (Spindle II-C; SMC-1 to SMC-6).
//!
//! | file | what it holds |
//! |---|---|
//! | `counter` | what a slot's counter says, as one number |
//! | `cursor` | a place in a ring: position and slot, moved together |
//! | `handoff` | from application threads to the step: reserve, ready, without a lock |
//! | `outbox` | the same with the ring: reserve, build in place, commit |

mod counter;
mod cursor;
mod handoff;
mod outbox;

pub use counter::SlotCounter;
pub use cursor::RingCursor;
pub use handoff::{HandOff, HandOffCells, Outcome, ReadyFlag, Refusal};
pub use outbox::{Outbox, Reservation, ReserveError, ReservedRun};

/// The length that marks a slot whose reservation was dropped: it holds a place, and no message.
pub(crate) const LENGTH_OF_NULL: u32 = u32::MAX;
