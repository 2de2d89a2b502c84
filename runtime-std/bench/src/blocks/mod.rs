//! `tramontane-lab bench blocks`: block groups of real processes on this machine, over shared
//! memory, TCP or RDMA, in turn with probes of the machine's limit. RDMC's experiments in the
//! simulator are rows of the record (`claims/rdmc.toml`).
//!
//! | file | contents |
//! |---|---|
//! | `command` | the arguments |
//! | `cases` | the requested configurations |
//! | `case` | a round of one configuration, and the results of its rounds |
//! | `run` | all rounds of all configurations |
//! | `task` | a process's task and its measurements |
//! | `member` | one process of block groups, and its timing |
//! | `receiving`, `completions` | a receiver's messages and their times; the reports to the root |
//! | `limit` | the machine's limit: copies at each receiver, or bytes read in place |
//! | `mark` | the marks of a message |
//! | `report` | rows as text and JSON |

mod case;
mod cases;
pub mod command;
mod completions;
pub(crate) mod limit;
mod mark;
mod member;
mod receiving;
mod report;
pub(crate) mod run;
pub(crate) mod task;
