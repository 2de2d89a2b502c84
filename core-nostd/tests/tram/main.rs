//! TRAM in the core: replicas and clients over a network whose every event is decided by a seed.

#![allow(
    clippy::integer_division,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[path = "../common/words.rs"]
mod words_apart;

mod answers;
mod calm;
mod crash_points;
mod durable;
mod faults;
mod hostile;
mod judge;
mod long_messages;
mod named;
mod network;
mod opened;
mod partitions;
mod probe;
mod random;
mod refusals;
mod returns;
mod sizes;
mod words;
mod world;
