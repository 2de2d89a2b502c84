//! The member's side of a join, in which it supplies joining nodes with state and messages.
//!
//! | file | subject |
//! |---|---|
//! | `serve` | the thread that supplies a joiner |
//! | `supply_logs` | how it supplies records that a joiner's logs lack |
//! | `queue` | the queue for one joiner |
//! | `joiners` | all joiners that a member supplies |
//! | `error` | why a joiner is not supplied |
//! | `wanted` | the requests of a joiner |

pub(crate) mod error;
pub(crate) mod joiners;
pub(crate) mod queue;
pub(crate) mod serve;
pub(crate) mod supply_logs;
pub(crate) mod wanted;
