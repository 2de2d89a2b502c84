//! The cost of a membership change, and a check of its guarantees: of several real processes under
//! load, one at a time is killed, stopped or asked to leave, and then restarted.
//!
//! | file | subject |
//! |---|---|
//! | `departure` | the ways in which a member departs |
//! | `events` | a process's task and reports, and the names of messages and logs |
//! | `member` | one process: it sends, checks and logs its deliveries, and reports events |
//! | `observer` | all processes, and the state of the group according to their reports |
//! | `logs` | the logs of a view, compared with each other |
//! | `run` | the rounds |
//! | `report` | the results |
//!
//! # Checks
//! - At each member, for each start of a sender: its messages arrive as 0, 1, 2, ... through all
//!   views, continuing from the state that a joiner receives. None is lost, duplicated or
//!   reordered.
//! - In each view: members that continue to the next view have delivered the same messages in the
//!   same order (VIE-8); other members have delivered a prefix of them (VIE-6).
//! - A member that is restarted is again in a view of all members.

pub mod departure;
mod events;
mod logs;
pub(crate) mod member;
mod observer;
pub(crate) mod report;
pub(crate) mod run;
