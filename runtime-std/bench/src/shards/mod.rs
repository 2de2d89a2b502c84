//! `tramontane-lab bench shards`: TRAM with real processes on this machine, over shared memory
//! and TCP.
//!
//! Each replica is a separate process, and the client is this process.
//!
//! | file | what it holds |
//! |---|---|
//! | `command` | the arguments |
//! | `load` | what the client does, and what it saw |
//! | `replica`, `crew` | the processes of TRAM's replicas, and their parent |
//! | `tram`, `takeover` | a run under load; leaders that are killed |
//! | `run`, `report` | what is asked for, and what came of it |

pub mod command;
mod crew;
mod load;
pub(crate) mod replica;
mod report;
pub(crate) mod run;
mod takeover;
mod tram;
