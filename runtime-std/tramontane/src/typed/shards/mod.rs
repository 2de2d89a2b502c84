//! State machines over shards: each group of an overlay has one, and a command for several groups
//! is applied in all of them, in one order with all other commands.
//!
//! The program's type is a [`StateMachine`](super::StateMachine), as in a group. Each replica of a
//! group [starts](ShardReplica::start) with the group's initial state. A [`ShardClient`] is not a
//! replica: it [proposes](ShardClient::propose) commands to a set of groups, and gets the answer of
//! each. So answers travel here, and serde must be able to encode them. An answer has at most
//! [`answer_max`](crate::shards::Description::answer_max) bytes.
//!
//! - A command is applied once in each of its groups, also if leaders change in the meantime, and
//!   its answer is what applying it returned in that group.
//! - If two groups both apply two commands, they apply them in the same order.
//! - [`ShardReplica::query_local`] reads a replica's copy as it is now. A linearizable query is a
//!   command whose `apply` only reads.
//!
//! # Invariants
//! - Each call ends with its answers or with the reason why there are none, however its client
//!   ends.
//! - The memory of a client is bounded: a window of calls is in flight, and a limited number waits.
//!
//! | file | subject |
//! |---|---|
//! | `replica` | the handle of a replica |
//! | `machine` | a replica's copy of the state, driven by its group |
//! | `client` | the handle of a client |
//! | `call` | what a caller waits for |
//! | `call_queue` | the calls between those who make them and the thread that sends them |
//! | `driver` | the thread that sends calls and takes their answers |
//! | `majorities` | the groups that have had no majority for a while |
//! | `no_answers` | the reasons why there are no answers |

mod call;
mod call_queue;
mod client;
mod driver;
mod machine;
mod majorities;
mod no_answers;
mod replica;

pub use self::call::ShardProposal;
pub use self::client::ShardClient;
pub use self::no_answers::{NoAnswers, ShardNotStarted};
pub use self::replica::ShardReplica;
