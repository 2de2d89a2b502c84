//! Participants that are processes, which are killed: `SIGKILL`, so that nothing is said or written
//! any more.
//!
//! A process of a participant is this program again, with `role` as its only test. It does what it
//! is told on its input, a line each, and says what came of it on its output.

mod outside;
mod outside_topics;
mod restart;
mod role;
mod support;
mod topics;
