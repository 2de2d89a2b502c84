//! The worker processes of one run, and the typed messages between them and their parent.
//!
//! | file | subject |
//! |---|---|
//! | `role` | the agreement of both ends: the command, and the types of tasks, orders and reports |
//! | `parent` | [`Crew`]: the parent's end |
//! | `worker` | [`Worker`]: a worker's end |
//! | `end` | the end of a worker |
//!
//! # The messages
//! A worker gets its task as JSON in its only argument. Afterwards, the parent sends orders over
//! the worker's standard input, and the worker sends reports over its standard output: one JSON
//! value per line, of the types that their [`Role`] names. The worker shares the parent's standard
//! error.
//!
//! # Invariants
//! - No worker outlives the crew: dropping a [`Crew`] releases all workers, waits a little longer
//!   than [`GRACE`](crate::processes::GRACE), and kills the rest. If the parent is killed instead,
//!   the leash of each worker ends it ([`crate::processes`]).
//! - The parent learns of a worker's end only after all its reports.
//!
//! # Uses
//! - The benches start one worker per member and wait for one report from each ([`Crew::reports`]).
//! - `demo` and `bench views` take events one at a time ([`Crew::next`]), send orders, and decide
//!   for themselves what silence or an exit means.
//! - `copy` on this machine has a root that works at the same time as its workers. It starts one
//!   worker per destination, whose report is `Placed` or `Failed`. While the root sends, a thread
//!   or the root's own loop calls [`Crew::next`] with a short timeout, and sets the root's cancel
//!   flag at the first failure or exit. Afterwards it keeps calling [`Crew::next`] up to its own
//!   time limit, and chooses the first cause.

mod end;
mod parent;
mod role;
mod worker;

pub use end::End;
pub use parent::{Crew, CrewError, Launch, WorkerEvent, WorkerId};
pub use role::Role;
pub use worker::{AttachError, Reporter, Worker};
