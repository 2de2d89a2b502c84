//! A simulated verbs device for tests: deterministic, and with every freedom that verbs leave to a
//! device.
//!
//! A [`Network`] connects devices, each with its [`Profile`]. Members open a device by its name, as
//! they open any other:
//!
//! ```text
//! let network = Network::new(seed, Clock::Real);
//! let device = network.add_device(Profile::strict());
//! let site = Site::open(&device.wanted(), &Limits::default(), None)?;
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `network`, `profile`, `faults`, `clock` | the interface for tests |
//! | `registry` | devices by their names |
//! | `work_time` | the cost of workers' commands in virtual time |
//! | `context`, `memory`, `window`, `completion_queue`, `queue_pair`, `send_list` | the owners' handles behind the seam `crate::adapter` |
//! | `hardware`, `agenda`, `random` | all devices with their objects, future events, random numbers |
//! | `locked`, `told` | limits on locked memory; settings that reached a device |
//! | `pair`, `completions` | states, flushes, overflows |
//! | `request`, `requester`, `path`, `responder`, `placement` | the path of a request: sending, network, receiving, placement in memory |
//! | `local_memory` | the local memory of requests and receives |
//!
//! # Rules
//! A reliable connection as in the InfiniBand specification, volume 1, chapters 9 to 11, as far as
//! this project uses it. Requests execute in order, each once. A forbidden request is refused and
//! breaks the connection. An unanswered request is retransmitted and finally given up. Outstanding
//! requests are flushed when a connection breaks. A message travels as a whole; its packets are
//! only counted.
//!
//! # Invariants
//! - The same seed and the same calls in virtual time produce the same run.
//! - Bytes are placed through the core's row types: this module contains no unsafe code.

mod agenda;
mod clock;
mod completion_queue;
mod completions;
mod context;
mod device_states;
mod faults;
mod hardware;
mod local_memory;
mod locked;
mod memory;
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
#[cfg(test)]
mod tests;
mod told;
mod waiting;
mod window;
mod work_time;

pub use clock::{Clock, is_inside_call};
pub(crate) use completion_queue::CompletionQueue;
pub(crate) use context::{Context, open};
pub use faults::Fault;
pub(crate) use memory::{ProtectionDomain, Registration};
pub use network::{CommandCount, CommandKind, ContextId, Counts, DeviceName, Network};
pub use path::Link;
pub use profile::{
    GidEntry, InlineGrant, Keys, Placement, PortProfile, Profile, ResetMeans, SevenRetries, Windows,
};
pub(crate) use queue_pair::QueuePair;
pub(crate) use registry::is_registered;
pub(crate) use send_list::{SendBuffers, SendList};
pub use told::Connection;
pub(crate) use window::MemoryWindow;
pub(crate) use work_time::WorkTime;
