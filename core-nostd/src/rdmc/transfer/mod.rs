//! The transfer that follows a schedule: one member's part in a block group (RDM-4 to RDM-6).
//!
//! A [`BlockGroup`] is a state machine without I/O of its own. Each member of a group has one. The
//! first member is the *root*, and it alone sends. Messages go one after the other.
//!
//! # Calls
//! - inputs: [`BlockGroup::take`] for each [`BlockEvent`](crate::fabric::BlockEvent) of the fabric,
//!   [`BlockGroup::lost`] for each lost peer; what peers say of themselves is read from their rows.
//! - output: [`BlockGroup::step`] posts what can be posted now, a bounded amount a call. Call it
//!   after inputs, and again as long as it is not [idle](Progress::is_idle).
//! - the root's application: [`BlockGroup::send`], and at the end [`BlockGroup::close`].
//! - what a message is kept in: [`MessageMemory`], called from `take` and `step`.
//!
//! # How a block goes
//! 1. The receiver posts a receive, a few steps ahead at most, and publishes it: its `ready` cell
//!    counts steps since the group began, and says that all its receives below are posted. One cell
//!    is enough for all peers, since every member can compute the schedule; it is posted only to
//!    the peer whose block may now come.
//! 2. The sender sends the block of its next step once it has it and the peer is ready for it.
//!    Steps are sent in order, receives may arrive in any: a block of a later step does not wait
//!    for one of an earlier.
//! 3. A receiver does not know of a message before its first block. That block's number (the
//!    immediate value) is how many blocks there are, and it goes to a *staging* block, since where
//!    it belongs depends on that. Then the application gives memory for the message and the block
//!    is copied there, in pieces, whenever nothing else is to be posted: one block a message is
//!    copied, as in the paper. Every other block's number is its place, to be compared.
//! 4. The last block is as long as its fabric says; all others have the group's block size. So a
//!    receiver knows the length when it has the last block, and is asked for memory for whole
//!    blocks. In a pipeline a message of one block goes as two, of which the second is empty: see
//!    `lengths`.
//!
//! # Invariants
//! - Messages are completed in the order of their sends, whole, and once (RDM-5).
//! - A receive is posted before its notice, and no block is sent that was not asked for (RDM-4).
//! - A group ends once, for all: the first failure that a member learns stays in its `failed` cell
//!   and is posted to all (RDM-6). A member that has confirmed a close leaves the failures of
//!   others to the root.
//! - Memory: one bit a block, lent, and constant state beside it.
//!
//! # One group, one channel
//! Blocks of a peer go into receives in order, so two groups of one view must not share the way
//! between two members: each has a [channel](crate::fabric::Channel) of its own, as each of the
//! paper's groups has queue pairs of its own. A group that is over closes it.
//!
//! Source: RDMC (Behrens et al., DSN 2018), 4.1, 4.2, and 4.6 "Recovery From Failure".

mod arriving;
mod cells;
mod ending;
mod failure;
mod group;
mod here;
mod lengths;
mod message;
mod posting;
mod setup;

pub use cells::CELLS_BYTES;
pub use failure::{Cause, Failure};
pub use group::{BlockGroup, CloseError, Outcome, Progress, SendError};
pub use here::words_for;
pub use message::MessageMemory;
pub use setup::{OpenError, Setup, Window};
