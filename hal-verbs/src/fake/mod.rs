//! A simulated verbs device for tests. It is deterministic, and has every freedom that verbs leave
//! to a device.
//!
//! A [`Network`] connects devices, each with its [`Profile`]. Members open a device by its name, as
//! they open any other device:
//!
//! ```text
//! let network = Network::new(seed, Clock::Real);
//! let device = network.add_device(Profile::strict());
//! let site = Site::open(&device.wanted(), &Limits::default(), None)?;
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `network`, `identity`, `counts`, `profile`, `faults`, `link`, `clock` | what tests see |
//! | `registry` | devices by their names |
//! | `work_time` | what the commands of workers cost, in virtual time |
//! | `context`, `memory`, `completion_queue`, `queue_pair`, `send_list` | objects as their owner has them: behind the seam `crate::adapter` |
//! | `hardware`, `agenda`, `random` | all devices with their objects, what is to happen, chance |
//! | `locked`, `told` | how much memory a process may lock; what options come to |
//! | `pair`, `transitions`, `completions` | a queue pair, its states and flushes; what runs over |
//! | `strike`, `device_states` | what faults do |
//! | `request`, `requester`, `messages`, `path`, `responder`, `placement` | the way of a request: out, over, in, into memory |
//! | `local_memory` | the memory that a request or a receive names at its own end |
//!
//! # Rules
//! A reliable connection as in the InfiniBand specification, volume 1, chapters 9 to 11, as far as
//! this project uses it. Requests execute in order, each of them once. A forbidden request is
//! refused and breaks the connection. An unanswered request is retransmitted and finally given up.
//! Outstanding requests are flushed when a connection breaks. A message travels as a whole; its
//! packets are only counted.
//!
//! # Invariants
//! - The same seed and the same calls in virtual time produce the same run.
//! - Bytes are placed through the core's row types: this module contains no unsafe code.

mod agenda;
mod clock;
mod completion_queue;
mod completions;
mod context;
mod counts;
mod device_states;
mod faults;
mod hardware;
mod identity;
mod link;
mod local_memory;
mod locked;
mod memory;
mod messages;
mod network;
mod pair;
mod path;
mod placement;
mod profile;
mod queue_pair;
mod random;
mod registry;
mod request;
mod requester;
mod responder;
mod send_list;
mod strike;
#[cfg(test)]
mod tests;
mod told;
mod transitions;
mod waiting;
mod work_time;

pub use clock::{Clock, is_inside_call};
pub(crate) use completion_queue::CompletionQueue;
pub(crate) use context::{Context, open};
pub use counts::{CommandCount, CommandKind, Counts};
pub use faults::Fault;
pub use identity::{ContextId, DeviceName};
pub use link::Link;
pub(crate) use memory::{ProtectionDomain, Registration};
pub use network::Network;
pub use profile::{
    GidEntry, InlineGrant, Keys, Placement, PortProfile, Profile, ResetMeans, SevenRetries,
};
pub(crate) use queue_pair::QueuePair;
pub(crate) use registry::is_registered;
pub(crate) use send_list::{SendBuffers, SendList};
pub use told::ConnectionSettings;
pub(crate) use work_time::WorkTime;
