//! Views: how a group agrees on its members, and on the ends of their messages (Spindle II-A; VIE).
//!
//! A view is an id and an ordered list of members. When a member fails, leaves or joins, the
//! members of the current view agree on the next one and on its *trims*: for each subgroup, the
//! position up to which every surviving member delivers, and no further (Derecho's ragged trim).
//! All of this is published in columns of the rows (see [`ViewBlock`](crate::layout::ViewBlock)),
//! which are read and written through a [`Table`]. [`ViewChange::step`] does a bounded amount of
//! work on them and returns.
//!
//! | file | what it holds |
//! |---|---|
//! | `cells` | what the cells say |
//! | `checked` | the same in cells with checks |
//! | `table` | the two seams: the columns, and what is asked of the node |
//! | `state` | what a member remembers, and which members it suspects |
//! | `suspicion` | heartbeats, suspicion and its spreading, and when to halt |
//! | `leader` | which member leads, and what it waits for before it does |
//! | `proposal` | the list of changes: taking over, proposing, accepting |
//! | `wedge` | the end of receiving, and the final counts |
//! | `trim` | where the view ends, set with the seal of the list |
//! | `commit` | when a list is committed, and when the next view is decided |
//! | `install` | delivery under the trim, and the next view |
//! | `change` | the phases in their order: one step |
//!
//! # The order of a change
//! suspect, leave or join request → propose → wedge and accept → commit → trim and seal → accept →
//! decide → deliver under the trim → install.
//!
//! # What keeps it safe
//! A leader's rank is its ballot. To accept means to copy a leader's list and to publish a
//! [`Stance`]; to promise means to suspect all lower ranks, in the same cell. A leader proposes
//! only once every member that it does not suspect has promised to accept nothing from its
//! predecessors; these members must be a majority of the view. It starts from the latest list that
//! any of them accepted. So a sealed list that a majority accepted under one ballot is part of
//! every later list: there is one next view, with one set of trims. A member wedges before it first
//! accepts, so no trim is below what any member delivered.
//!
//! # Rows that change during a step
//! A member publishes while others read, in shared memory and wherever a device or another thread
//! writes to the copies. Cells only grow, and a reader that sees a cell also sees everything that
//! its owner published before it. The local row changes only in this member's own step. So the set
//! of members that this member suspects, and whether the rest is a majority, is the same at each
//! read until this member itself suspects another.
//!
//! | where | looks | why it holds |
//! |---|---|---|
//! | `watch` | installed, heartbeat, committed | A member that has installed has published its heartbeat and its decision before. |
//! | `spread` | a word of suspicions; then all of them, for the majority | They only grow: a member that had no majority has none. New flags wait for the next step. |
//! | `learn`, also before new reports are taken | committed, once; then suspicions; then the list and the trims | A member that knows of a decision changes its list no more. The members that it suspected when it decided are in its row: if it removed this member, suspicions are not shared. The own list counts only if it agrees with what the owner shows. |
//! | `may_lead` | each stance, once | A promise is for ever. A member that has promised to a later leader, or accepted from one, showed before that it suspects this member. |
//! | `take_over` | each stance again, then its owner's suspicions; then the latest list | A member that turned to a later leader since shows that it suspects this member, and then nothing is taken over. A member that did not can accept nothing until this member proposes. |
//! | `follow`, and `echo` of the leader that is about to be suspected | the leader's stance, once; then its suspicions; then its list | A leader only adds to its list. It suspected the members that the list removes before it published it. |
//! | accepting (`adopt`) | a list to check it, and again to copy it | The copy, which no other member writes, is checked before a stance speaks for it. If it is not what was checked, this member halts. |
//! | `all_accepted` | each stance, once, at different moments | What was accepted under a ballot was accepted, whatever its owner accepts later. |
//! | `seal` | each final count, once | It is published once, before its owner accepts anything. |
//! | `finish` | own cells; others' installed | It only grows. |
//!
//! Even a peer that publishes nonsense cannot make a step panic, loop, or read outside its row. A
//! member that publishes something that no correct member can publish is suspected, so the others
//! never simply wait for it. The exception is a fault that is detected too late. If the next view
//! is already decided, or the local copy of a list is torn, this member halts and names the member
//! that changed what it had published ([`Halt::ChangedBy`]).
//!
//! Requirement: VIE-1.

mod cells;
mod change;
mod checked;
mod commit;
mod install;
mod leader;
mod proposal;
mod state;
mod suspicion;
mod table;
mod trim;
mod wedge;

pub use cells::{Accepted, Ballot, Change, Committed, Stance};
pub use change::{RequestError, ViewChange};
pub(crate) use state::Loss;
pub use state::{Cause, Halt, NextView, PeerState, Status, ViewOptions, ViewState};
pub use table::{Host, RowTable, Table};
