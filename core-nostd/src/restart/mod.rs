//! Total restart (DUR-6): how a group continues after all its members have died, from the state
//! that the answering nodes have on disk.
//!
//! Everything here is a function of the answers. The caller handles files, threads and connections.
//!
//! | file | contents |
//! |---|---|
//! | `answer` | the state that a node has on disk |
//! | `verdict` | what is still missing, or what to do |
//! | `logs` | choice of a log, and treatment of damaged records |
//!
//! # How a group restarts
//! 1. One node, the *leader* of an attempt, asks the other nodes for their [`Answer`]s.
//!    [`Restart::verdict`] says what is still missing, or returns a [`Plan`]. Its *base* is the
//!    newest view that any node knows to be decided.
//! 2. Each participant of the plan makes durable that it has heard of the attempt. From then on it
//!    makes no promise under a lower [`PromiseBallot`], not even in a later process. Its answer
//!    must still be the same.
//! 3. Once all have done so, each participant receives the log that was taken
//!    ([`Restart::log_of`]), sets aside the records that this log does not have
//!    ([`Restart::cut_of`]), and makes its [`Promise`] durable under the ballot of the attempt. In
//!    the same write it notes that the base is decided, because this promise replaces the promise
//!    that recorded the base.
//! 4. Once all participants have promised, the plan's next view is decided, and each participant
//!    makes the decision durable. If the plan adopted a promise that was found, the answers have
//!    changed, so the restart continues at 1. Otherwise the group continues in that view.
//!
//! A leader that loses a participant begins again with a greater attempt.
//!
//! # Why it is safe
//! - **One next view.** A restart is one more takeover of the change of its base view (see the
//!   module `view`), with a ballot above those of all its leaders. A member of the base that
//!   decided anything had the promises of a majority, which were on disk before they were echoed.
//!   So any majority of the base has at least one of these promises, and the latest promise found
//!   is adopted. A restarted process accepts nothing in the view in which it died.
//! - **The adopted view may already have run.** If the members of an adopted view delivered
//!   anything in it, they first made its decision durable. So a majority of *that* view is needed
//!   too. Either it has the decision, in which case that view is the base, or it has nothing that
//!   matters.
//! - **Messages that were durable at a majority survive.** A majority of the base's members in a
//!   subgroup answers. So one of them has everything that became durable in the base, and knows
//!   that the base is decided. Everything that became durable earlier is in each *whole* log: the
//!   log of a member that knows of the decision or promised the base. A member without a whole log
//!   counts in the majority, because it has delivered nothing in the base, but its log is not used;
//!   at least one whole log must be present. When a view is adopted, its members receive the whole
//!   log before they promise, because later restarts ask only them.
//! - **A changed disk counts as no disk.** All these arguments rely on nodes' past states. If a
//!   node's log is not the one that it noted ([`LogNote`]), or if another member had seen more of
//!   it, the node does not know that state and counts in no majority. The log that is taken has
//!   everything that was seen to be durable at a majority.
//! - **Nothing unordered is replayed.** The log that is taken belongs to a member of the base. If a
//!   view was sealed, the log ends no later than the trim.

mod answer;
mod logs;
mod verdict;

pub use answer::{Answer, KnownView, LogEnd, LogNote, LogState, Promise, PromiseBallot};
pub use logs::TakenLog;
pub use verdict::{Plan, Restart, Verdict, Wait, Want};
