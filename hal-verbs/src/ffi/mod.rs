//! Everything foreign: libibverbs, which is opened at run time. Each object of it is a type here.
//!
//! Each foreign object is owned by one type that ends it when dropped, and keeps alive what it
//! stands on:
//!
//! ```text
//! Context <- ProtectionDomain <- MemoryRegion -> Pages
//!    ^               ^
//! CompletionQueue <- QueuePair
//! ```
//!
//! # Invariants
//! - A raw pointer lives in exactly one of these types, is not null, and is passed to its
//!   `ibv_destroy`, `ibv_dealloc`, `ibv_dereg` or `ibv_close` once.
//! - Pages outlive the registration of any part of them; a device never reaches memory that was
//!   given back.
//! - What is posted lies inside a registration that is borrowed until the call returns. What a
//!   device reads later it reads through the registration, and refuses once that is gone.
//! - libibverbs is safe to use from several threads, so the types are `Send` and `Sync`.
//!
//! [`libibverbs`] declares what is used of the library; the other modules are what the seam offers.

mod completion;
mod device;
mod features;
mod interfaces;
mod libibverbs;
mod memory;
mod queue_pair;
mod send_list;
mod window;

pub(crate) use completion::CompletionQueue;
pub(crate) use device::{Context, DeviceList, gid_kind};
pub(crate) use interfaces::interfaces_with;
pub use libibverbs::NoLibrary;
pub(crate) use memory::{ProtectionDomain, Registration};
pub(crate) use queue_pair::QueuePair;
pub(crate) use send_list::{SendBuffers, SendList};
pub(crate) use window::MemoryWindow;

use std::io;

/// What a call that sets `errno` left there.
fn last_error() -> io::Error {
    io::Error::last_os_error()
}

/// The result of a call that returns an error number, or -1 and sets `errno`.
fn check(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        -1 => Err(last_error()),
        number => Err(io::Error::from_raw_os_error(number.abs())),
    }
}
