//! Everything foreign: libibverbs through `rdma-sys`, and pages from the kernel. All that is
//! `unsafe` here, but for handing on what a caller promises of block memory.
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
//! Quirks of `rdma-sys` 0.3 that stay in here: ports are queried through `___ibv_query_port`; the
//! types with unions are its own; an event's kind is a Rust enum, which must not be made from what
//! a kernel says, and is read as the number that it is.

mod barrier;
mod completion;
mod device;
mod memory;
mod queue_pair;
mod send_list;

pub(crate) use barrier::device_read_barrier;
pub(crate) use completion::{BATCH, Completion, CompletionQueue};
pub(crate) use device::{Context, DeviceList, PortAttributes};
pub use memory::MemoryRegion;
pub(crate) use memory::{Access, Pages, ProtectionDomain};
pub(crate) use queue_pair::{QueuePair, QueuePairLimits, Route, SendTimes, State};
pub(crate) use send_list::{Operation, SendBuffers, SendList, Target};

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
