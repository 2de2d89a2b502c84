//! Views. First the view protocol by itself: members that are nothing but a `ViewChange`, a row in
//! plain memory, and a multicast that consists of counts. What they do is judged by an oracle that
//! reads rows and counts its own way. Then nodes with real rings, in `nodes`.
//!
//! | file | what it holds |
//! |---|---|
//! | `arena` | the members of one view, and how one of them takes a step |
//! | `oracle` | what must hold in every state |
//! | `exhaustive` | small groups, every interleaving and every crash point |
//! | `chain` | views that follow each other, under random faults |
//! | `random_plans` | many seeds of that |
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
