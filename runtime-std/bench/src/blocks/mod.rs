//! `tramontane-lab bench blocks`: block groups of real processes on this machine, over shared
//! memory, TCP or RDMA, in turn with probes of the machine's limit. RDMC's experiments in the
//! simulator are rows of the record (`claims/rdmc.toml`).
//!
//! | file | what it holds |
//! |---|---|
//! | `command`, `experiment`, `link` | the arguments |
//! | `cases` | the configurations that are asked for |
//! | `case` | a round of one, and what its rounds came to |
//! | `run` | all rounds of all configurations |
//! | `disturbance` | which link is slow, which member is delayed, and what the paper's analysis (4.5) says of it |
//! | `schedule` | algorithms by name, and their steps |
//! | `task` | what a process is to do, and what it saw |
//! | `member` | one process of block groups, and what is timed |
//! | `receiving`, `completions` | what a receiver gets, and when; what the root knows of it |
//! | `pause` | a member that is delayed |
//! | `limit` | the machine's limit: copies at each receiver, or bytes read where they lie |
//! | `mark` | the marks of a message |
//! | `report` | rows as text and JSON |

mod case;
mod cases;
pub mod command;
mod completions;
mod disturbance;
mod experiment;
pub(crate) mod limit;
mod link;
mod mark;
mod member;
mod pause;
mod receiving;
mod report;
pub(crate) mod run;
mod schedule;
pub(crate) mod task;
