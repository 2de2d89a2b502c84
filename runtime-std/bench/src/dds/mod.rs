//! The DDS's levels in the simulator (Spindle IV-F, Fig. 18): one topic, one publisher, and 1 to 15
//! subscribers, with Spindle's techniques and without.
//!
//! | file | what it holds |
//! |---|---|
//! | `command` | the arguments |
//! | `level` | the levels, and what each is to a run |
//! | `run` | the runs |
//! | `report` | the table, and the goals |

pub(crate) mod command;
mod level;
mod report;
pub(crate) mod run;
