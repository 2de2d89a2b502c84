//! Groups with fixed membership: the layout of their rows, the messages that they deliver, and the
//! treatment of a member that publishes impossible values.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::integer_division,
    clippy::panic
)]

#[path = "../common/mod.rs"]
mod common;

mod batching;
mod bounds;
mod checked_rows;
#[cfg(feature = "durable")]
mod durable;
mod edges;
mod forwarding;
mod full_lists;
mod hops;
mod idle_subgroups;
mod impossible_rows;
mod layout;
mod lent;
mod lone_sender;
mod nodes;
mod one_memory;
mod owed_rounds;
mod partners;
mod posted_bytes;
mod promises;
#[cfg(feature = "relays")]
mod relays;
#[cfg(all(feature = "blocks", feature = "durable"))]
mod rest;
mod threads;
mod weak_order;
mod whole_batches;
mod words;
