//! Views: how a group agrees on its members and on the ends of their messages (Spindle II-A; VIE).
//!
//! A view is an id and an ordered list of members. When a member fails, leaves or joins, the
//! members of the current view agree on the next one and on its *trims*: for each subgroup, the
//! position up to which every surviving member delivers, and no further (Derecho's ragged trim).
//! All of this is published in columns of the rows (see [`ViewBlock`](crate::layout::ViewBlock)),
//! which are read and written through a [`Table`]. [`ViewChange::step`] does a bounded amount of
//! work on them and returns.
//!
//! | file | contents |
//! |---|---|
//! | `cells` | the contents of the cells |
//! | `checked` | the same in cells with checks |
//! | `table` | the two interfaces: the columns, and the services of the node |
//! | `state` | a member's state, and the members that it suspects |
//! | `suspicion` | heartbeats, suspicions and their spreading, and the reasons to halt |
//! | `leader` | the leader, and its conditions for leading |
//! | `proposal` | the list of changes: taking over, proposing, accepting |
//! | `wedge` | the end of receiving, and the final counts |
//! | `trim` | the ragged trim, set with the seal of the list |
//! | `commit` | commitment of a list, and decision of the next view |
//! | `install` | delivery up to the trim, and the next view |
//! | `change` | the phases in their order: one step |
//!
//! # Order of a change
//! suspect, leave or join request → propose → wedge and accept → commit → trim and seal → accept →
//! decide → deliver up to the trim → install.
//!
//! # Safety argument
//! A leader's rank is its ballot. To accept means to copy a leader's list and to publish a
//! [`Stance`]; to promise means to suspect all lower ranks, in the same cell. A leader proposes
//! only once every member that it does not suspect has promised to accept nothing from its
//! predecessors; these members must be a majority of the view. It starts from the latest list that
//! any of them accepted. So a sealed list that a majority has accepted under one ballot is part of
//! every later list: there is only one next view, with one set of trims. A member wedges before it
//! first accepts, so no trim is below what any member delivered.
//!
//! # Rows that change during a step
//! A member publishes while others read, both in shared memory and wherever a device or another
//! thread writes to the copies. Cells only grow, and a reader that sees a cell also sees everything
//! that its owner published before it. The local row changes only in this member's own step.
//! Therefore the set of members that this member suspects, and whether the remaining members are a
//! majority, is the same at each read until this member itself suspects another member.
//!
//! | function | reads | why it is safe |
//! |---|---|---|
//! | `watch` | installed, heartbeat, committed | A member that has installed the next view has published its heartbeat and its decision before. |
//! | `spread` | a word of suspicions; then all of them, for the majority | Suspicions only grow: a member that had no majority still has none. New flags wait for the next step. |
//! | `learn`, also before new reports are taken | committed, once; then suspicions; then the list and the trims | A member that knows of a decision no longer changes its list. The members that it suspected when it decided are in its row; if this member is one of them, it does not share the suspicions. The local list counts only if it agrees with the one that the owner shows. |
//! | `may_lead` | each stance, once | A promise is permanent. A member that has made a promise to a later leader, or accepted a list from one, showed before that it suspects this member. |
//! | `take_over` | each stance again, then its owner's suspicions; then the latest list | A member that has since turned to a later leader shows that it suspects this member, and then nothing is taken over. A member that has not can accept nothing until this member proposes. |
//! | `follow`, and `echo` of the leader that is about to be suspected | the leader's stance, once; then its suspicions; then its list | A leader only adds to its list. It suspected the members that the list removes before it published the list. |
//! | accepting (`adopt`) | a list to check it, and again to copy it | The copy, which no other member writes, is checked before a stance announces it. If it differs from the checked list, this member halts. |
//! | `all_accepted` | each stance, once, at different moments | A list that was accepted under a ballot stays accepted, even if its owner accepts another one later. |
//! | `seal` | each final count, once | A final count is published once, before its owner accepts anything. |
//! | `finish` | local cells; the `installed` cells of others | `installed` only grows. |
//!
//! Even a peer that publishes nonsense cannot make a step panic, loop, or read outside its row. A
//! member that publishes something that no correct member can publish is suspected, so that the
//! others never wait for it indefinitely. The exception is a fault that is detected too late. If
//! the next view has already been decided, or the local copy of a list is torn, this member halts
//! and names the member that changed what it had published ([`Halt::ChangedBy`]).
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
