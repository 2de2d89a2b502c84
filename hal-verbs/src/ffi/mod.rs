//! All foreign code: libibverbs, which is loaded at run time, with one type for each kind of its
//! objects.
//!
//! Each foreign object is owned by one type, which destroys it when dropped and keeps the objects
//! it depends on alive:
//!
//! ```text
//! Context <- ProtectionDomain <- MemoryRegion -> Pages
//!    ^               ^
//! CompletionQueue <- QueuePair
//! ```
//!
//! # Invariants
//! - A raw pointer is in exactly one of these types, is not null, and is passed to its
//!   `ibv_destroy`, `ibv_dealloc`, `ibv_dereg` or `ibv_close` once.
//! - Pages outlive the registration of any part of them, so a device never accesses memory that has
//!   been released.
//! - Posted ranges are inside a registration that is borrowed until the call returns. Later reads
//!   by the device go through the registration, and are refused once it has ended.
//! - libibverbs is safe to use from several threads, so the types are `Send` and `Sync`.
//!
//! [`libibverbs`] declares the parts of the library that are used. The other modules implement the
//! interface to the adapter.

mod completion;
mod device;
mod errno;
mod features;
mod interfaces;
mod libibverbs;
mod memory;
mod queue_pair;
mod send_list;

pub(crate) use completion::CompletionQueue;
pub(crate) use device::{Context, DeviceList, gid_kind};
pub(crate) use interfaces::interfaces_with;
pub use libibverbs::{LinkedFunctions, NoLibrary, link};
pub(crate) use memory::{ProtectionDomain, Registration};
pub(crate) use queue_pair::QueuePair;
pub(crate) use send_list::{SendBuffers, SendList};

use errno::{check, last_error};
