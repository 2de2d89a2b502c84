//! The program `tramontane-redis` as its clients see it: real processes, and bytes on sockets. The
//! replies are read by a crate that shares nothing with the server.

mod client;
mod commands;
mod durable;
mod failures;
mod histories;
mod limits;
mod nodes;
mod slow;
mod subscriptions;
mod transactions;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_tramontane-redis");
