//! Experiments: Spindle's continuous sending over shared memory, TCP or RDMA, compared with probes
//! of the machine's limit; RDMC's block multicasts; TRAM's shards; logs; and members that leave and
//! return. In addition, the record compares the papers' claims with the simulator's results.
//!
//! | file | contents |
//! |---|---|
//! | `command`, `options` | the arguments |
//! | `run` | each command: runs its experiment, and prints the report |
//! | `experiment`, `processes`, `worker` | experiments as processes: tasks, outcomes, and how they are started |
//! | `real`, `report` | `multicast` |
//! | `load` | `load` |
//! | `low_rate` | `latency` and `idle` |
//! | `large` | `views --large` |
//! | `member` | the process of all these: a member of a group |
//! | `probe`, `mesh` | probes: memory without a protocol, TCP without a protocol |
//! | `views` | `views`: members that leave and return |
//! | `blocks` | `blocks` |
//! | `record` | `record` |
//! | `shards` | `shards` |
//! | `durable` | `durable` |
//! | `profiles` | the simulated machines |
//! | `error`, `output`, `plot`, `progress`, `machine`, `spread`, `text`, `touch` | shared parts |

mod blocks;
pub mod command;
mod durable;
mod error;
mod experiment;
mod large;
mod load;
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
mod spread;
mod text;
mod touch;
mod views;
mod worker;

pub use error::BenchError;
pub use run::run;
