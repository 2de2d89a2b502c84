//! The seam to a verbs device: the objects on which the fabric is built, of libibverbs or of a fake
//! device, and the plain types that both use.
//!
//! The choice between the two is made when a device is opened by its name, and does not show above
//! this module. Without the feature `fake`, each object has one variant, and the choice costs
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
//! - Pages outlive the registration of any part of them; a device never accesses memory that was
//!   released.
//! - Posted ranges are inside a registration that is borrowed until the call returns. Later reads
//!   by the device go through the registration, and are refused once that is gone.
//! - Objects of the two kinds are never mixed: all objects of a site come from one context. A call
//!   that mixes them is refused.

/// Makes the same call on an object of either kind. Each file has one enum `Inner` of both.
macro_rules! either {
    ($object:expr, $inner:pat => $call:expr) => {
        match $object {
            Inner::Library($inner) => $call,
            #[cfg(feature = "fake")]
            Inner::Fake($inner) => $call,
        }
    };
}

mod barrier;
mod completion;
mod context;
mod events;
mod memory;
mod pages;
mod queue_pair;
mod send_list;

pub(crate) use barrier::device_read_barrier;
pub(crate) use completion::{BATCH, Completion, CompletionQueue};
pub(crate) use context::{
    Context, DeviceAttributes, DeviceFeatures, PortAttributes, device_names, is_fake, open,
};
pub(crate) use events::AsyncEvent;
pub use memory::MemoryRegion;
pub(crate) use memory::{Access, LocalRange, ProtectionDomain};
pub(crate) use pages::{PageSize, Pages};
pub(crate) use queue_pair::{QueuePair, QueuePairLimits, Route, SendTimes, State, mtu_raw};
pub(crate) use send_list::{Operation, REQUESTS_MAX, SendBuffers, SendList, Target};
