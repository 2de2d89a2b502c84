//! Replicated state machines: the application is a type with commands and answers, and every
//! proposed command is answered.
//!
//! A [`StateMachine`] is a value that commands change, and that serde can encode. [`Replicated`]
//! keeps a copy of it at every member of a group. All members apply the same commands in the same
//! order, so the copies stay equal. A joining node receives the state, and continues with it.
//!
//! - [`propose`](Replicated::propose) sends a command to all members, and returns what applying it
//!   *at this member* returned.
//! - [`query_local`](Replicated::query_local) reads this member's copy as it is now.
//! - [`query_linearizable`](Replicated::query_linearizable) reads it after everything that any
//!   member had been answered before the call.
//!
//! ```
//! use std::time::Duration;
//!
//! use tramontane::serde::{Deserialize, Serialize};
//! use tramontane::{Description, Replicated, StartOptions, StateMachine};
//!
//! #[derive(Serialize, Deserialize)]
//! #[serde(crate = "tramontane::serde")]
//! struct Counter(u64);
//!
//! impl StateMachine for Counter {
//!     type Command = u64;
//!     type Answer = u64;
//!
//!     fn apply(&mut self, command: u64) -> u64 {
//!         self.0 += command;
//!         self.0
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // One node, so that this runs by itself.
//! let group = Description::local(&format!("typed-{}", std::process::id()), 1, 100, 1024);
//! let counter = Replicated::start(group, StartOptions::new(0), Counter(0))?;
//! let patience = Duration::from_secs(10);
//! let (first, second) = (counter.propose(40), counter.propose(2));
//! assert_eq!((first.wait(patience)?, second.wait(patience)?), (40, 42));
//! assert_eq!(counter.query_linearizable(|counter| counter.0).wait(patience)?, 42);
//! counter.leave(patience)?;
//! # Ok(())
//! # }
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `state_machine` | the program's side |
//! | `replicated` | the handle |
//! | `proposal`, `query` | what a caller waits for |
//! | `not_answered` | the reasons why there is no answer |
//! | `encoding` | commands and states as bytes |
//! | `answers` | the answers between those who give them and those who wait for them |
//! | `pending` | the wait of a caller |
//! | `outgoing` | own commands on their way to the group, in the order of sending |
//! | `unslotted` | commands that have no slot yet |
//! | `limits` | limits on commands that wait to be sent |
//! | `hand_over` | the thread for commands that nobody else sends |
//! | `in_thread` | starting and leaving, as futures |
//! | `reading` | whether a thread reads the state |
//! | `versioned` | a state with its version, and the versions before it |
//! | `past_state` | what a caller of a past state or of a durable version waits for |
//! | `copy` | a member's copy of the state, driven by the group |
//! | `shards` | state machines over shards, and their clients |

mod answers;
mod copy;
mod encoding;
mod hand_over;
mod in_thread;
mod limits;
mod not_answered;
mod outgoing;
mod past_state;
mod pending;
mod proposal;
mod query;
mod reading;
mod replicated;
mod shards;
mod state_machine;
mod unslotted;
mod versioned;

pub use self::in_thread::InThread;
pub use self::limits::ReplicatedOptions;
pub use self::not_answered::{NotAnswered, NotStarted};
pub use self::past_state::{DurableVersion, StateAtTime};
pub use self::proposal::{Durability, Proposal};
pub use self::query::Query;
pub use self::replicated::Replicated;
pub use self::shards::{NoAnswers, ShardClient, ShardNotStarted, ShardProposal, ShardReplica};
pub use self::state_machine::StateMachine;
pub use self::versioned::StateVersion;
