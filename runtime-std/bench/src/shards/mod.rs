//! `tramontane bench shards`: TRAM's evaluation in the simulator, beside RamCast and protocols over
//! messages, with the paper's claims and our goals beside what came out.
//!
//! | file | what it holds |
//! |---|---|
//! | `command`, `run` | the arguments; runs what is asked for |
//! | `experiment` | the paper's figures, and what each varies |
//! | `tree` | the trees of groups |
//! | `system` | the protocols and their variants |
//! | `case` | a run of one system under load |
//! | `runs` | runs by case and seed |
//! | `writes` | figure 2: writes without a protocol |
//! | `leader_change` | table 1: all leaders crash |
//! | `report` | rows, for programs and people |
//! | `page`, `drawings` | the page of the documentation, and its figures |
//! | `real` | the same on this machine, without the simulator |
//! | `judged`, `claims`, `goals` | the paper's claims and our goals, beside what came out |

mod case;
mod claims;
pub mod command;
mod drawings;
mod experiment;
mod goals;
mod judged;
mod leader_change;
mod page;
pub(crate) mod real;
mod report;
pub(crate) mod run;
mod runs;
mod system;
mod tree;
mod writes;
