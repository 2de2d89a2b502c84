//! Total restart (DUR-6): what a group goes on with after all its members died, from what the nodes
//! that answer have on disk.
//!
//! Everything here is a function of the answers. Files, threads and connections are the caller's.
//!
//! | file | what it holds |
//! |---|---|
//! | `answer` | what a node has on disk |
//! | `verdict` | what is waited for, or what is to be done |
//! | `logs` | which log is taken, and what becomes of damaged records |
//!
//! # How a group restarts
//! 1. One node, the *leader* of an attempt, asks the others for their [`Answer`]s.
//!    [`Restart::verdict`] says what is waited for, or gives a [`Plan`]. Its *base* is the newest
//!    view that anybody knows to be decided.
//! 2. Each participant of the plan makes durable that it heard of the attempt, and promises
//!    nothing under a lesser [`PromiseBallot`] any more, not even as a later process. Its answer
//!    must still be the same.
//! 3. Once all have, each participant gets the log that was taken ([`Restart::log_of`]), sets aside
//!    what that one does not have ([`Restart::cut_of`]), and makes its [`Promise`] durable under
//!    the ballot of the attempt; in the same write it notes that the base is decided, since this
//!    promise takes the place of the one that said so.
//! 4. Once all participants have, the plan's next view is decided. Each makes that durable. If the
//!    plan adopted a promise that was found, the answers have changed, and it goes on at 1. If not,
//!    the group goes on in that view.
//!
//! A leader that loses a participant begins again, with a greater attempt.
//!
//! # Why it is safe
//! - **One next view.** A restart is one more takeover of the change of its base view (see the
//!   module `view`), with a ballot above those of all its leaders. A member of the base that
//!   decided anything had the promises of a majority, on disk before they were echoed. So a
//!   majority of the base has one of them, and the latest of those it has is adopted. A process
//!   that runs again accepts nothing in the view in which it died.
//! - **What was adopted may have gone on.** If the members of an adopted view delivered anything in
//!   it, they made its decision durable before. So a majority of *that* view is needed too: it has
//!   either the decision, which then is the base, or nothing that matters.
//! - **What was durable at a majority survives.** A majority of the base's members in a subgroup
//!   answers. So one of them has what became durable in the base, and it knows that the base is
//!   decided. What became durable before is in each *whole* log: that of a member which knows of
//!   the decision or promised the base. A member without one counts in the majority, since it has
//!   delivered nothing in the base, but lends no log; one whole log has to be there. When a view is
//!   adopted, its own members get all of it before they promise: later restarts ask them alone.
//! - **A changed disk is no disk.** All of this asks a node what it had. One whose log is not the
//!   one that it noted ([`LogNote`]), or of which another member had seen more, does not know: it
//!   counts in no majority. The log that is taken has what was seen to be durable at a majority.
//! - **Nothing is replayed that was not ordered.** The log that is taken is a member's of the base,
//!   and goes up to the trim at most, where a view was sealed.

mod answer;
mod logs;
mod verdict;

pub use answer::{Answer, KnownView, LogEnd, LogNote, LogState, Promise, PromiseBallot};
pub use logs::TakenLog;
pub use verdict::{Plan, Restart, Verdict, Wait, Want};
