//! The cost of logs for a group, and the duration of a restart of all its members: measured with
//! real processes over shared memory that log to a disk.
//!
//! | file | subject |
//! |---|---|
//! | `command` | the arguments |
//! | `events` | a process's task, orders and reports |
//! | `member` | one process: it sends, counts durable messages, and digests its deliveries |
//! | `processes` | all processes, and their reports |
//! | `plain` | plain writers of the same bytes with as many syncs |
//! | `run` | the rounds, the kill of all processes, and the restart |
//! | `report` | the results |
//!
//! # Checks
//! All members deliver one sequence, which is the same before the kill and after the restart. Its
//! count and its digest show this. Every message is reported as durable everywhere before the kill.

pub(crate) mod command;
mod events;
pub(crate) mod member;
mod plain;
mod processes;
pub(crate) mod report;
pub(crate) mod run;
