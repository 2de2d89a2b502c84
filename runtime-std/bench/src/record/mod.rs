//! The record: every number and every stated direction of the papers' texts, beside what the
//! simulator gives.
//!
//! Nothing is read off a plot. A claim that no run can answer stands in the record too, with the
//! reason. A run is shared by all claims that look at it.
//!
//! | file | what it holds |
//! |---|---|
//! | `claim` | what a paper says, and how it is measured |
//! | `spindle`, `rdmc` | the papers' claims |
//! | `case` | what is run for a claim |
//! | `runs` | runs by case and seed, each done once |
//! | `senders`, `own`, `multicasts` | how a case is run: the papers' variants, our core, blocks |
//! | `verdict` | when a claim holds |
//! | `machines` | the papers' machines |
//! | `report` | the record for programs, for people, and for the documentation |
//! | `command`, `run` | `bench record` |

mod case;
mod claim;
pub mod command;
mod machines;
mod multicasts;
mod own;
mod rdmc;
mod report;
pub(crate) mod run;
mod runs;
mod senders;
mod spindle;
mod verdict;
