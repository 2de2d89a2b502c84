//! Experiments: Spindle's continuous sending, over shared memory, TCP, RDMA or in the simulator,
//! and probes of the machine's limit to compare with; and RDMC's block multicasts, in the
//! simulator, over shared memory or TCP.
//!
//! | file | what it holds |
//! |---|---|
//! | `command`, `options` | the arguments |
//! | `run` | each command: runs its experiment, and prints the report |
//! | `experiment`, `processes`, `worker` | experiments as processes: tasks, outcomes, how they are started |
//! | `real`, `simulated`, `report` | `multicast` |
//! | `low_rate` | `latency` and `idle` |
//! | `steady`, `large` | `views --steady` and `--large` |
//! | `member` | the process of all these: a member of a group |
//! | `probe`, `mesh` | probes: memory without a protocol, TCP without a protocol |
//! | `views` | `views`: members that go and come back |
//! | `blocks` | `blocks` |
//! | `baselines` | the protocols that TRAM is compared with, over TCP |
//! | `record` | `record` |
//! | `shards` | `shards` |
//! | `dds` | `dds` |
//! | `durable` | `durable` |
//! | `profiles` | the machines that are simulated, and `parameters` |
//! | `error`, `output`, `plot`, `progress`, `machine`, `spread`, `touch` | what all share |

pub mod baselines;
mod blocks;
pub mod command;
mod dds;
mod durable;
mod error;
mod experiment;
mod large;
mod low_rate;
mod machine;
mod member;
mod mesh;
mod options;
mod output;
mod plot;
mod probe;
mod processes;
mod profiles;
mod progress;
mod real;
mod record;
mod report;
mod run;
mod shards;
mod simulated;
mod spread;
mod steady;
mod touch;
mod views;
mod worker;

pub use error::BenchError;
pub use run::run;
