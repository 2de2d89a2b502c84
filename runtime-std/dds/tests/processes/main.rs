//! Participants in separate processes, which are killed with `SIGKILL`, so that they send and write
//! nothing more.
//!
//! A participant's process runs this same program, with `role` as its only test. It carries out the
//! commands on its input, one per line, and prints their results on its output.

#[path = "../../../local/src/free_addresses.rs"]
mod free_addresses;
mod outside;
mod outside_topics;
mod restart;
mod role;
mod support;
mod topics;
