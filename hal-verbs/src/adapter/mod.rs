//! The interface to a verbs device: the objects on which the fabric is built, either of libibverbs
//! or of a fake device, and the plain types that both kinds use.
//!
//! The choice between the two kinds is made when a device is opened by its name, and is invisible
//! above this module. Without the feature `fake`, each object has one variant, and the choice costs
//! nothing.
//!
//! Each object keeps the objects it depends on alive:
//!
//! ```text
//! Context <- ProtectionDomain <- MemoryRegion -> Pages
//!    ^               ^
//! CompletionQueue <- QueuePair
//! ```
//!
//! # Invariants
//! - Pages outlive the registration of any part of them, so a device never accesses memory that has
//!   been released.
//! - Posted ranges are inside a registration that is borrowed until the call returns. Later reads
//!   by the device go through the registration, and are refused once it has ended.
//! - Objects of the two kinds are never mixed: all objects of a site come from one context. A call
//!   that mixes them is refused.

/// Makes the same call on an object of either kind. A file that uses this has an enum `Inner`.
macro_rules! either {
    ($object:expr, $inner:pat => $call:expr) => {
        match $object {
            Inner::Library($inner) => $call,
            #[cfg(feature = "fake")]
            Inner::Fake($inner) => $call,
        }
    };
}

mod attributes;
mod barrier;
mod completion;
mod connection;
mod context;
mod events;
mod memory;
mod pages;
mod queue_pair;
mod request;
mod send_list;

pub(crate) use attributes::{DeviceAttributes, DeviceFeatures, PortAttributes};
pub(crate) use barrier::device_read_barrier;
pub(crate) use completion::CompletionQueue;
pub(crate) use connection::{QueuePairLimits, QueuePairState, Route, SendTimes, mtu_raw};
pub(crate) use context::{Context, device_names, is_fake, open};
pub(crate) use events::AsyncEvent;
pub use memory::MemoryRegion;
pub(crate) use memory::ProtectionDomain;
pub(crate) use pages::{PageSize, Pages};
pub(crate) use queue_pair::QueuePair;
pub(crate) use request::{Access, BATCH, Completion, LocalRange, Operation, REQUESTS_MAX, Target};
pub(crate) use send_list::{SendBuffers, SendList};
