//! libibverbs itself: its structures, its functions, and how they are looked up.
//!
//! The library is loaded when a device is first requested. So one program works on hosts with and
//! without RDMA, and the build needs no header, no `-dev` package and no libclang.
//!
//! Names and signatures are those of `<infiniband/verbs.h>`. A test that `.ci/full` runs compares
//! these declarations with the header, field by field (`against_the_header`).
//!
//! # Invariants
//! - The library is never closed, because the objects that it creates refer to it.
//! - [`open`] succeeds before any function is called. Each function except the first,
//!   [`ibv_get_device_list`], takes a pointer from an earlier call.

#[cfg(test)]
mod against_the_header;
mod functions;
mod numbers;
mod open;
mod operations;
mod structures;

pub(super) use functions::*;
pub(super) use numbers::*;
pub(super) use open::open;
pub use open::{LinkedFunctions, NoLibrary, link};
pub(super) use operations::{ibv_poll_cq, ibv_post_recv, ibv_post_send, ibv_req_notify_cq};
pub(super) use structures::*;
