//! What a change of membership costs, and whether it keeps what it promises: real processes under
//! load, of which one at a time is killed, stopped or asked to leave, and then started again.
//!
//! | file | subject |
//! |---|---|
//! | `departure` | how a member goes |
//! | `events` | a process's task and reports, and the names of messages and logs |
//! | `member` | one process: it sends, checks and logs what it delivers, and reports what happens |
//! | `observer` | all processes, and what their reports say of the group |
//! | `logs` | the logs of a view, compared with each other |
//! | `run` | the rounds |
//! | `report` | what came of it |
//!
//! # What is checked
//! - At each member, each start of a sender: its messages come as 0, 1, 2, ... through all views
//!   and with the state that a joiner takes over: nothing lost, doubled or reordered.
//! - Of each view: members that go on to the next one delivered the same, in the same order
//!   (VIE-8); members that do not, a part of it from the start (VIE-6).
//! - A member that is started again is in a view of all members again.

pub mod departure;
mod events;
mod logs;
pub(crate) mod member;
mod observer;
pub(crate) mod report;
pub(crate) mod run;
