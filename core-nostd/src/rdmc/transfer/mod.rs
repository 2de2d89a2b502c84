//! The transfer that follows a schedule: one member's part in a block group (RDM-4 to RDM-6).
//!
//! A [`BlockGroup`] is a state machine without I/O of its own. Each member of a group has one. The
//! first member is the *root*; only the root sends. Messages are sent one at a time.
//!
//! # Calls
//! - inputs: [`BlockGroup::take`] for each [`BlockEvent`](crate::fabric::BlockEvent) of the fabric,
//!   and [`BlockGroup::lost`] for each lost peer; the states of peers are read from their rows.
//! - output: [`BlockGroup::step`] posts what can be posted now, a bounded amount per call. Call it
//!   after inputs, and repeat the call until it is [idle](Progress::is_idle).
//! - the root's application: [`BlockGroup::send`], and at the end [`BlockGroup::close`].
//! - memory of messages: [`MessageMemory`], called from `take` and `step`.
//!
//! # Path of a block
//! 1. The receiver posts a receive, at most a few steps ahead, and publishes it. Its `ready` cell
//!    counts steps since the group began, and says that all its receives below that count have been
//!    posted. One cell is enough for all peers, because every member can compute the schedule. The
//!    cell is posted only to the peer whose block may now come.
//! 2. The sender sends the block of its next step once it has that block and the peer is ready for
//!    it. Steps are sent in order, but receives may complete in any order: a block of a later step
//!    does not wait for a block of an earlier step.
//! 3. A receiver learns of a message from its first block, whose immediate value is the number of
//!    blocks. The block goes to a *staging* block, because its destination depends on that number.
//!    The application then provides memory for the message, and the block is copied there, in
//!    pieces, whenever there is nothing else to post. One block per message is copied, as in the
//!    paper. The immediate value of every other block is its index, which the receiver checks.
//! 4. The fabric reports the length of the last block; all others have the group's block size. A
//!    receiver therefore knows the message's length only when it has the last block, and requests
//!    memory for whole blocks. In a pipeline, a message of one block is sent as two blocks, the
//!    second of which is empty: see `lengths`.
//!
//! # Invariants
//! - Messages are completed in the order in which they were sent, whole, and once (RDM-5).
//! - A receive is posted before its notice, and no block is sent before the notice has arrived
//!   (RDM-4).
//! - A group ends once, for all members: the first failure that a member learns of stays in its
//!   `failed` cell and is posted to all (RDM-6). A member that has confirmed a close leaves other
//!   members' failures to the root.
//! - Memory: one lent bit per block, plus constant state.
//!
//! # One group, one channel
//! Blocks from a peer fill receives in order, so two groups in one view must not share the path
//! between two members. Each has its own [channel](crate::fabric::Channel), as each of the paper's
//! groups has its own queue pairs. A group that has ended closes its channel.
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
