//! `tramontane bench blocks`: RDMC's experiments in the simulator, and block groups on real
//! fabrics.
//!
//! | file | what it holds |
//! |---|---|
//! | `command`, `experiment` | the arguments |
//! | `run` | runs the experiments that are asked for |
//! | `bed` | what simulated runs stand on: machine, window, seed |
//! | `figures` | the paper's figures as functions of a machine |
//! | `simulated` | one simulated message |
//! | `schedule` | algorithms by name, and their steps |
//! | `single` | one group, one message: algorithms, block sizes, scale (the paper's figures 4, 6, 8) |
//! | `several` | many groups: a storage layer's writes, overlapping senders (figures 9, 10) |
//! | `breakdown` | where the time of a message goes (table 1, figure 5) |
//! | `small` | small messages (figure 7, 4.6) |
//! | `interrupts` | polling and interrupts (figure 11) |
//! | `offload` | blocks that the cards pass on (figure 12) |
//! | `preemption` | members whose processors are taken away now and then (4.5, 5.3) |
//! | `disturbance` | which link is slow, which member is delayed, and what the paper's analysis (4.5) says of it |
//! | `analysis` | slow links and delays in the simulator |
//! | `real` | real processes over shared memory, TCP or RDMA |
//! | `report` | rows, and what the paper says of them |

mod analysis;
mod bed;
mod breakdown;
pub mod command;
mod disturbance;
mod experiment;
pub(crate) mod figures;
mod interrupts;
mod link;
mod offload;
mod preemption;
pub(crate) mod real;
mod report;
pub(crate) mod run;
mod schedule;
mod several;
pub(crate) mod simulated;
mod single;
mod small;
