//! Views: how a group agrees on who belongs to it, and on where its messages end (Spindle II-A; VIE).
//!
//! A view is an id and an ordered list of members. When a member fails, leaves or joins, the members of the
//! present view agree on the next one and on its *trims*: for each subgroup the place up to which all that
//! go on deliver, and no further. All of that is said in columns of the rows (see
//! [`ViewBlock`](crate::layout::ViewBlock)), read and written through a [`Table`]; [`ViewChange::step`] does
//! a bounded amount of work on them and returns.
//!
//! | file | what it holds |
//! |---|---|
//! | `cells` | what the cells say |
//! | `table` | the two seams: the columns, and what is asked of the node |
//! | `state` | what a member remembers, and whom it suspects |
//! | `suspicion` | heartbeats, suspicion and its spreading, and when to halt |
//! | `leader` | who leads, and what it waits for before it does |
//! | `proposal` | the list of changes: taking over, proposing, accepting |
//! | `wedge` | the end of receiving, and the final counts |
//! | `trim` | where the view ends, set with the seal of the list |
//! | `commit` | when a list is committed, and when the next view is decided |
//! | `install` | delivery under the trim, and the next view |
//! | `change` | the phases in their order: one step |
//!
//! # The order of a change
//! suspect, leave or wish → propose → wedge and accept → commit → trim and seal → accept → decide →
//! deliver under the trim → install.
//!
//! # What keeps it safe
//! A leader's rank is its ballot. To accept is to copy a leader's list and to publish a [`Stance`]; to
//! promise is to suspect all ranks below, in the same cell. A leader proposes only once every member that it
//! does not suspect, which must be a majority of the view, promised to accept nothing of its predecessors;
//! and it starts from the latest list that any of them accepted. So a sealed list that a majority accepted
//! under one ballot is in every list that comes after: there is one next view, with one set of trims. A
//! member wedges before it first accepts, so no trim is below what anyone delivered.
//!
//! Not even a peer that publishes nonsense makes a step panic, loop, or read out of its row: what no correct
//! member can publish makes its owner suspected.

mod cells;
mod change;
mod commit;
mod install;
mod leader;
mod planted;
mod proposal;
mod state;
mod suspicion;
mod table;
mod trim;
mod wedge;

pub use cells::{Accepted, Ballot, Change, Committed, Stance};
pub use change::{RequestError, ViewChange};
#[cfg(feature = "planted-faults")]
pub use planted::Fault;
pub use state::{Cause, Halt, NextView, PeerState, Status, ViewOptions, ViewState};
pub(crate) use state::{Loss, flag_of};
pub use table::{Host, RowTable, Table};
