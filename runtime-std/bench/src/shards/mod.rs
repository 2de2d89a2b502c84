//! `tramontane-lab bench shards`: TRAM with real processes on this machine, over shared memory
//! and TCP.
//!
//! Each replica is a separate process, and the client is this process.
//!
//! | file | contents |
//! |---|---|
//! | `command` | the arguments |
//! | `load` | the client's load and measurements |
//! | `replica`, `crew` | the processes of TRAM's replicas, and their parent |
//! | `tram`, `takeover` | a run under load; leaders that are killed |
//! | `run`, `report` | the requested runs, and their results |

pub mod command;
mod crew;
mod load;
pub(crate) mod replica;
mod report;
pub(crate) mod run;
mod takeover;
mod tram;
