//! Mutants: the same program, with one defect each. A reader of the adapter can skip this folder:
//! without `--mutant` it has no effect.
//!
//! Each mutant is meant for one check, which must name it, and shows in scenarios that give the
//! defect an occasion. Most mutants are wrong at one node only, which `--at` names.

mod mutation;
mod ordering;
mod shards;
mod siblings;
mod spoiler;

pub use mutation::{Mutant, Mutation, list};
pub use shards::Wrong;
pub use spoiler::{Spoiler, lock};
