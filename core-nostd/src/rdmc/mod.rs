//! Block multicast: a large message is sent in blocks, and every member that has a block passes it
//! on.
//!
//! A [`Schedule`] determines which member sends which block to which member in which step. It is a
//! pure function of the algorithm, the members, the blocks, the rank and the step. It has no table
//! and no state between steps, and every member can compute every other member's part (RDM-1,
//! RDM-8).
//!
//! | algorithm | steps for `n` members and `k` blocks | limit |
//! |---|---|---|
//! | [`Algorithm::Sequential`] | `(n - 1) k` | the root sends everything to every member |
//! | [`Algorithm::Interleaved`] | `(n - 1) k` | the same, but all members wait equally long |
//! | [`Algorithm::Chain`] | `n + k - 2` | the last member waits for all members before it |
//! | [`Algorithm::Tree`] | `ceil(log2 n) k` | no member passes anything on before it has everything |
//! | [`Algorithm::Pipeline`] | `ceil(log2 n) + k - 1` | none: fewer steps are not possible |
//! | [`Algorithm::Hybrid`] | `ceil(log2 racks) + ceil(log2 largest rack) + k - 1` | leaders send twice in a step |
//!
//! A [`transfer::BlockGroup`] follows a schedule over a fabric that carries blocks.
//!
//! # Invariants
//! - Every member except the root receives each block once, from a member that has had it for at
//!   least one step (RDM-2).
//! - Only the leaders in the hybrid algorithm send twice in a step. No member receives twice in a
//!   step.
//!
//! Source: RDMC (Behrens et al., DSN 2018), 4.3 and 4.4.

mod chain;
mod hybrid;
mod hypercube;
mod interleaved;
mod pipeline;
mod schedule;
mod sequential;
mod shape;
pub mod transfer;
mod tree;

pub use schedule::{Algorithm, Schedule, ScheduleError};
pub use shape::{Hop, Shape};
