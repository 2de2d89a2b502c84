//! The driver starts a system's members through its adapter, makes them follow a scenario, and
//! records the events as a history. It does not judge, and knows no implementation.
//!
//! | file | contents |
//! |---|---|
//! | `scenarios`, `plan`, `feature` | plans, as pure functions of a seed, the number of nodes and a scale |
//! | `options`, `choice`, `error` | the options, the chosen scenarios, and errors |
//! | `run`, `driver` | one invocation: the scenarios, repetitions and environment |
//! | `stage`, `steps`, `parting`, `settling`, `leaders`, `receiving` | the interpreter of plans |
//! | `shrinking` | fewer faults that still fail |
//! | `member`, `ledger`, `names` | records of members and messages; names of nodes and groups |
//! | `protocol`, `payload` | the protocol with an adapter |
//! | `process`, `lines`, `network`, `disks`, `power`, `holder`, `interrupt` | the operating system |
//! | `folder`, `history_file` | output files |
//! | `recorded`, `reach`, `outcome` | evaluation of the history, and the scenario's result |
//!
//! Invariants:
//! - a scenario always ends within a few times the deadline, whatever a member does;
//! - no process and no network remains, even if the driver is killed;
//! - the same seed gives each member the same commands in the same order, faults included.

mod choice;
mod disks;
mod driver;
mod error;
mod feature;
mod folder;
mod history_file;
mod holder;
mod interrupt;
mod leaders;
mod ledger;
mod lines;
mod load_clock;
mod member;
mod names;
mod network;
mod options;
mod outcome;
mod parting;
mod payload;
mod plan;
mod power;
mod process;
mod protocol;
mod reach;
mod receiving;
mod recorded;
mod run;
mod scenarios;
mod settling;
mod shrinking;
mod stage;
mod steps;

pub use error::DriveError;
pub use feature::Feature;
pub use interrupt::Interrupts;
pub use ledger::NODES_MAX;
pub use options::{RunOptions, RunProgress};
pub use run::{Driven, drive};
pub use scenarios::{SCENARIOS, Scenario};
