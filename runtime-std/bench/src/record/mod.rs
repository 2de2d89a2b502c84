//! The record: the papers' statements and this project's goals, compared with the simulator's
//! results.
//!
//! The statements are data: rows of the files in `claims/`, each with a query on the runs that
//! answer it. No value is read off a plot. A claim that no run can answer is also a row, which
//! contains the reason. A run is shared by all rows that use it.
//!
//! | file | contents |
//! |---|---|
//! | `rows` | the rows |
//! | `query`, `schedule` | queries, and their functions of a schedule without a run |
//! | `case` | the run behind each figure |
//! | `sending` | small messages (Spindle) |
//! | `transfer` | messages in blocks (RDMC) |
//! | `overlay`, `tree`, `writes`, `leader_change` | messages to several groups (TRAM) |
//! | `machines` | the papers' machines |
//! | `runs` | runs by case and seed, each carried out once |
//! | `verdict`, `number` | the rules by which a claim holds; formatting of numbers |
//! | `report`, `page` | the record for programs, for people, and for the documentation |
//! | `command`, `run` | `bench record` |

mod case;
pub mod command;
mod figures;
mod leader_change;
mod machines;
mod number;
mod overlay;
mod page;
mod query;
mod report;
mod rows;
pub(crate) mod run;
mod runs;
mod schedule;
mod sending;
mod transfer;
mod tree;
mod verdict;
mod writes;
