//! The checks: what an atomic multicast promises, each promise with its id, and the judge of them all.
//!
//! `docs/checks.md` beside this crate defines each of them; the code states them twice, fast here and naively
//! under `tests/`, and the two must agree. Nothing in here knows an implementation: it reads a history.

mod registry;
mod verdict;

pub use registry::{Check, CheckId, Strength};
pub use verdict::{Finding, Judgement, Outcome, Verdict, Witness};
