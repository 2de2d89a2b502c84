//! The seam to a verbs device: the objects that the fabric stands on, of libibverbs or of a fake
//! device, and the plain types that both speak.
//!
//! Which of the two it is, is decided when a device is opened by its name, and shows nowhere above
//! this module. A program without the feature `fake` has one variant of each object, and pays
//! nothing for the choice.
//!
//! Each object keeps alive what it stands on:
//!
//! ```text
//! Context <- ProtectionDomain <- MemoryRegion -> Pages
//!    ^               ^
//! CompletionQueue <- QueuePair
//! ```
//!
//! A memory window keeps its protection domain, and the region that it is bound to.
//!
//! # Invariants
//! - Pages outlive the registration of any part of them; a device never reaches memory that was
//!   given back.
//! - What is posted lies inside a registration that is borrowed until the call returns. What a
//!   device reads later it reads through the registration, and refuses once that is gone.
//! - Objects of the two kinds never meet: all of a site come from one context. Where they would,
//!   the call is refused.

/// The same call on an object of either kind. Each file has one enum `Inner` of both.
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
mod window;

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
pub(crate) use window::{Bind, MemoryWindow};
