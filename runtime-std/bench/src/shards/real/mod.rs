//! `tramontane bench shards --real`: the same protocols with real processes or threads on this
//! machine, over shared memory and TCP.
//!
//! TRAM runs as a program runs it: each replica is a process, and each client a thread of this one.
//! The others have no runtime. Their replicas and clients are threads of this process, which steps
//! them in a bare loop; so their figures leave out what a runtime costs.
//!
//! | file | what it holds |
//! |---|---|
//! | `command` | the arguments |
//! | `load` | what clients do, and what they saw |
//! | `replica`, `crew` | the processes of TRAM's replicas, and their parent |
//! | `tram`, `takeover` | a run under load; leaders that are killed |
//! | `run`, `report` | what is asked for, and what came of it |

pub mod command;
mod crew;
mod load;
pub(crate) mod replica;
mod report;
pub(super) mod run;
mod takeover;
mod tram;
