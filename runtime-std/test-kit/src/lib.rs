//! Runs your replicated state machine in simulated groups, in your own `cargo test`.
//!
//! A seed determines a group and everything that happens to it: members crash in the middle of a
//! change, are stopped, are cut off from the others, leave and join, and messages are late. The
//! group runs the same core as a real one, in virtual time, so a thousand groups take seconds. At
//! each member, a copy of your state machine applies the commands that are delivered there, and
//! joining members take over an encoded state.
//!
//! ```
//! use std::collections::BTreeMap;
//! use tramontane::serde::{Deserialize, Serialize};
//! use tramontane::StateMachine;
//! use tramontane_test_kit::Trials;
//!
//! #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
//! #[serde(crate = "tramontane::serde")]
//! struct Map(BTreeMap<u64, u64>);
//!
//! impl StateMachine for Map {
//!     type Command = (u64, u64);
//!     type Answer = Option<u64>;
//!     fn apply(&mut self, (key, value): (u64, u64)) -> Option<u64> {
//!         self.0.insert(key, value)
//!     }
//! }
//!
//! let ran = Trials::new(Map::default, |proposer| (proposer.below(4), proposer.below(100)))
//!     .invariant(|map| if map.0.len() <= 4 { Ok(()) } else { Err("a fifth key".into()) })
//!     .seeds(1..=50)
//!     .run();
//! assert!(ran.answered > 1000 && ran.crashes > 0 && ran.joins > 0);
//! ```
//!
//! With [`Trials::logged`], the members log the commands. All members of a group are killed at
//! once, some disks are lost, and the group restarts from the logs of the others:
//!
//! ```
//! # use tramontane::serde::{Deserialize, Serialize};
//! # use tramontane::StateMachine;
//! # use tramontane_test_kit::Trials;
//! #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
//! #[serde(crate = "tramontane::serde")]
//! struct Sum(u64);
//!
//! impl StateMachine for Sum {
//!     type Command = u64;
//!     type Answer = u64;
//!     fn apply(&mut self, number: u64) -> u64 {
//!         self.0 += number;
//!         self.0
//!     }
//! }
//!
//! let ran = Trials::new(Sum::default, |proposer| proposer.below(10)).logged().seeds(1..=30).run();
//! assert!(ran.restarts > 0 && ran.disks_lost > 0);
//! ```
//!
//! # What is checked
//! - All members give the same answer to a command, and equal copies have equal states. A state
//!   machine that reads a clock, or depends on the order of a `HashMap`, fails.
//! - A command and a state are unchanged after they were encoded and decoded. A field that serde
//!   skips fails as soon as a member joins.
//! - A copy that starts anew and applies all commands again ends in the same state. In groups that
//!   log, each node does this when it restarts, and the answers must be the same. The node's
//!   snapshot and the commands after it must lead to this state too: a field that snapshots omit
//!   fails.
//! - Your [`invariant`](Trials::invariant) holds after each command.
//! - Each answer is that of your [`model`](Trials::model): a second, simpler implementation. A
//!   command that was proposed after another was answered comes after it in the order. Together,
//!   this means that the history of answers is linearizable. In groups that log, an answer is given
//!   once its command is durable at a majority, and answers remain linearizable over restarts.
//! - No command is lost once it has been answered, and copies are equal after a restart.
//! - `apply` does not panic.
//!
//! A run that fails is repeated in smaller groups with fewer events, and [`Trials::run`] panics
//! with the smallest one: what was wrong, the events that led to it, and the seed. Repeat it with
//! the environment variable `TRAMONTANE_SEED`.
//!
//! # What is not checked
//! Only the state machine runs, not the program around it: its threads and its clients are not
//! simulated, and each proposer proposes without waiting for its answers. The copies are what your
//! commands make of the simulated order; they do not influence it.
//!
//! A simulated disk keeps what was synced and may lose what was not, and it may be lost or changed
//! while its node is down. Single damaged records and failing writes are not simulated, and logs
//! have no format: the tests of the package `tramontane-log` cover both. A restart and the syncs of
//! its nodes take no time. If most nodes of a group lose their disks, the group waits for an
//! operator; this does not happen here. Shards are not simulated.

mod events;
#[cfg(doctest)]
mod guide;
mod plan;
mod proposer;
mod replay;
mod restart;
mod trials;
mod violation;

pub use proposer::Proposer;
pub use trials::{Ran, Trials};
pub use violation::Violation;
