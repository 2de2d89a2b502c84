//! A model of the order, the ring and the ragged trim. All its states are visited, and the core is
//! compared with it step by step. `docs/assurance/model.md` says what this shows and what it does
//! not show.
//!
//! | file | contents |
//! |---|---|
//! | `group` | the model of the order with nulls and of the ring of slots |
//! | `trim` | the model of the end of a view |
//! | `explorer` | visits all states of a model |
//! | `exhausted` | the models whose states are all visited, with their numbers of states |
//! | `refuted` | models with a planted fault, each of which is found |
//! | `refines_group`, `refines_trim` | checks that the core takes only steps of the models |
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::integer_division,
    clippy::panic,
    clippy::unwrap_used
)]

#[allow(dead_code, reason = "it is the view tests', and serves here in part")]
#[path = "../view/arena.rs"]
mod arena;
#[allow(dead_code, reason = "it is the view tests', and serves here in part")]
#[path = "../view/around.rs"]
mod around;
#[path = "../common/mod.rs"]
mod common;
mod exhausted;
mod explorer;
mod group;
#[allow(dead_code, reason = "it is the view tests', and serves here in part")]
#[path = "../view/oracle.rs"]
mod oracle;
mod refines_group;
mod refines_trim;
mod refuted;
mod trim;
