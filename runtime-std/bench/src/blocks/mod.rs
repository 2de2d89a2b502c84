//! `tramontane bench blocks`: RDMC's experiments in the simulator, and block groups on real
//! fabrics.
//!
//! | file | what it holds |
//! |---|---|
//! | `command`, `experiment` | the arguments |
//! | `run` | runs the experiments that are asked for |
//! | `simulated` | one simulated message |
//! | `schedule` | algorithms by name, and their steps |
//! | `single` | one group, one message: algorithms, block sizes, scale (the paper's figures 4, 6, 8) |
//! | `several` | many groups: a storage layer's writes, overlapping senders (figures 9, 10) |
//! | `disturbance` | which link is slow, which member is delayed, and what the paper's analysis (4.5) says of it |
//! | `analysis` | slow links and delays in the simulator |
//! | `real` | real processes over shared memory, TCP or RDMA |
//! | `report` | rows, and what the paper says of them |

mod analysis;
pub mod command;
mod disturbance;
mod experiment;
mod link;
pub(crate) mod real;
mod report;
pub(crate) mod run;
mod schedule;
mod several;
mod simulated;
mod single;
