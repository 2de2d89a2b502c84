//! What this adapter uses of `corosync/cpg.h`, written down by hand.
//!
//! The project's own crate `rust-corosync` (3.2.0) is not used: it has no way to ask for the ring
//! at the time of joining (`CPG_MODEL_V1_DELIVER_INITIAL_TOTEM_CONF`), which view ids need; its
//! upcalls are plain functions without a context, called under one lock for all connections; and it
//! links four more libraries.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// A connection to the daemon; one per group.
pub(super) type Handle = u64;

pub(super) const MODEL_V1: c_uint = 1;
pub(super) const DELIVER_INITIAL_TOTEM_CONF: c_uint = 1;
pub(super) const TYPE_AGREED: c_uint = 2;
pub(super) const DISPATCH_ONE_NONBLOCKING: c_uint = 4;
pub(super) const NAME_BYTES_MAX: usize = 128;

#[repr(C)]
pub(super) struct Name {
    pub(super) length: u32,
    pub(super) value: [c_char; NAME_BYTES_MAX],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Address {
    pub(super) nodeid: u32,
    pub(super) pid: u32,
    pub(super) reason: u32,
}

#[repr(C)]
pub(super) struct RingId {
    pub(super) nodeid: u32,
    pub(super) seq: u64,
}

#[repr(C)]
pub(super) struct ModelV1 {
    pub(super) model: c_uint,
    pub(super) deliver: unsafe extern "C" fn(Handle, *const Name, u32, u32, *mut c_void, usize),
    pub(super) change: unsafe extern "C" fn(
        Handle,
        *const Name,
        *const Address,
        usize,
        *const Address,
        usize,
        *const Address,
        usize,
    ),
    pub(super) ring: unsafe extern "C" fn(Handle, RingId, u32, *const u32),
    pub(super) flags: c_uint,
}

#[link(name = "cpg")]
unsafe extern "C" {
    pub(super) fn cpg_model_initialize(
        handle: *mut Handle,
        model: c_uint,
        data: *mut ModelV1,
        context: *mut c_void,
    ) -> c_uint;
    pub(super) fn cpg_finalize(handle: Handle) -> c_uint;
    pub(super) fn cpg_fd_get(handle: Handle, descriptor: *mut c_int) -> c_uint;
    pub(super) fn cpg_context_get(handle: Handle, context: *mut *mut c_void) -> c_uint;
    pub(super) fn cpg_context_set(handle: Handle, context: *mut c_void) -> c_uint;
    pub(super) fn cpg_dispatch(handle: Handle, kind: c_uint) -> c_uint;
    pub(super) fn cpg_join(handle: Handle, group: *const Name) -> c_uint;
    pub(super) fn cpg_leave(handle: Handle, group: *const Name) -> c_uint;
    pub(super) fn cpg_local_get(handle: Handle, nodeid: *mut c_uint) -> c_uint;
    pub(super) fn cpg_mcast_joined(
        handle: Handle,
        guarantee: c_uint,
        parts: *const libc::iovec,
        count: c_uint,
    ) -> c_uint;
}
