//! Two partitions with static memory that agree on one order over queuing and sampling ports, as in
//! ARINC 653, and that continue when one of them restarts.
//!
//! Copy this example, and change the parts marked as yours:
//!
//! | file | contents | yours to change |
//! |---|---|---|
//! | `group` | the participants, the largest message, the window | yes |
//! | `orders` | the replicated state, and the messages | yes |
//! | `ports` | the requirements on the ports | |
//! | `frame`, `staged` | the frames of the queuing ports: writes in parts, each with its session | |
//! | `hello` | the content of the sampling ports: the handshake, and liveness | |
//! | `queue` | a queue in an array, without panics | |
//! | `fabric` | the core's fabric over queuing ports | |
//! | `memory` | static memory, lent to one view at a time | |
//! | `member` | one member in one view | |
//! | `partition` | opening, running and restarting, in one step | |
//! | `shim` | ports for two partitions that are stepped in turn; for processes on Linux; over `a653rs` | replace them with your system's |
//!
//! # Sessions
//! Each start of a partition has an *incarnation*, a boot counter. Two incarnations and a view form
//! a *session*. Each frame names its session, and frames of other sessions are dropped. Therefore
//! frames that a dead incarnation has left in a queue do no harm.
//!
//! # Restart
//! With the feature `views`, a partition that sees a new incarnation of its partner knows that the
//! partner's memory is lost, and that the incarnation with which it shared a session cannot
//! continue. Only then does it end the view and continue without the partner, in a view of its own.
//! Silence is reported but changes nothing, so the two partitions never continue separately. A
//! partition without a session is readmitted in a view of the same two members under the new
//! incarnation; the state precedes the view's writes in the same queue.
//!
//! Without the feature, the restart is reported to both partitions, and both stop.

#![no_std]

#[cfg(feature = "linux")]
extern crate std;

mod fabric;
mod frame;
pub mod group;
mod hello;
mod member;
mod memory;
pub mod orders;
mod partition;
pub mod ports;
mod queue;
pub mod shim;
mod staged;

pub use memory::PartitionStorage;
pub use partition::{Partition, Phase};
