//! Mutants: the same program, wrong in one way each. A reader of the adapter may pass over this
//! folder: without `--mutant` none of it does anything.
//!
//! Each is meant for one check, which must name it, and shows in the scenarios in which there is
//! something to be wrong about. Most are wrong at one node only, which `--at` names.

mod mutation;
mod ordering;
mod shards;
mod siblings;
mod spoiler;

pub use mutation::{Mutant, Mutation, list};
pub use shards::Wrong;
pub use spoiler::{Spoiler, lock};
