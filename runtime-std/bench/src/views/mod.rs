//! The cost of a membership change, and a check of its promises: real processes under load; one at
//! a time is killed, stopped or asked to leave, and then started again.
//!
//! | file | subject |
//! |---|---|
//! | `departure` | the ways in which a member goes |
//! | `events` | a process's task and reports, and the names of messages and logs |
//! | `member` | one process: it sends, checks and logs its deliveries, and reports events |
//! | `observer` | all processes, and the state of the group according to their reports |
//! | `logs` | the logs of a view, compared with each other |
//! | `run` | the rounds |
//! | `report` | the results |
//!
//! # Checks
//! - At each member, for each start of a sender: its messages arrive as 0, 1, 2, ... through all
//!   views and with the state that a joiner takes over, with nothing lost, duplicated or reordered.
//! - In each view: members that continue to the next view delivered the same messages in the same
//!   order (VIE-8); other members delivered a prefix of them (VIE-6).
//! - A member that is started again is in a view of all members again.

pub mod departure;
mod events;
mod logs;
pub(crate) mod member;
mod observer;
pub(crate) mod report;
pub(crate) mod run;
