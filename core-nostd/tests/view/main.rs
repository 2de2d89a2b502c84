//! Views. First the view protocol by itself: members that consist only of a `ViewChange`, a row in
//! plain memory, and a multicast of counts. An oracle judges them, with its own way of reading rows
//! and counts. Then nodes with real rings, in `nodes`.
//!
//! | file | contents |
//! |---|---|
//! | `arena` | the members of one view, and a step of one of them |
//! | `oracle` | the conditions that hold in every state |
//! | `exhaustive` | small groups: every interleaving and every crash point |
//! | `chain` | successive views under random faults |
//! | `random_plans` | many seeds of `chain` |
//! | `named` | cases that broke other systems |
//! | `live_rows` | rows that change between two reads of one step |
//! | `bad_input` | rows that hold what no correct member publishes |
//! | `looks` | what a look at a view costs |
//! | `nodes` | whole nodes: messages, slots that change, long upcalls, late writes |
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::integer_division,
    clippy::panic,
    clippy::unreachable,
    clippy::unwrap_used
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../steady_view/mod.rs"]
mod steady_view;
#[path = "../common/weak.rs"]
mod weak;

mod arena;
mod around;
mod bad_input;
mod chain;
mod exhaustive;
mod live_rows;
mod looks;
mod named;
mod nodes;
mod oracle;
mod random_plans;
#[cfg(feature = "durable")]
mod restart;
mod words;
