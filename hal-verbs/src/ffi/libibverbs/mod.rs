//! libibverbs itself: its structures, its functions, and how they are found.
//!
//! The library is opened when a device is first asked for. So one program serves hosts with and
//! without RDMA, and to build it needs no header, no `-dev` package and no libclang.
//!
//! Names and signatures are those of `<infiniband/verbs.h>`. What is declared here is compared with
//! the header, field by field, by a test that `.ci/full` runs (`against_the_header`).
//!
//! # Invariants
//! - The library is never closed: what it has made refers to it.
//! - [`open`] has succeeded before any function is called. Each function but the first,
//!   [`ibv_get_device_list`], takes a pointer that an earlier call gave.

#[cfg(test)]
mod against_the_header;
mod functions;
mod numbers;
mod open;
mod operations;
mod structures;

pub(super) use functions::*;
pub(super) use numbers::*;
pub use open::NoLibrary;
pub(super) use open::open;
pub(super) use operations::{
    ibv_alloc_mw, ibv_dealloc_mw, ibv_poll_cq, ibv_post_recv, ibv_post_send, ibv_req_notify_cq,
};
pub(super) use structures::*;
