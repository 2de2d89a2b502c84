//! Small-message multicast (SMC): a ring of slots in each sender's row (Spindle II-C; SMC-1 to
//! SMC-6).
//!
//! | file | contents |
//! |---|---|
//! | `counter` | the content of a slot's counter, as one number |
//! | `cursor` | a position in a ring, with its slot |
//! | `handoff` | the lock-free hand-off from application threads to the step: reserve, ready |
//! | `length` | the meaning of a slot's length |
//! | `outbox` | the hand-off together with the ring: reserve, build in place, commit |

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
