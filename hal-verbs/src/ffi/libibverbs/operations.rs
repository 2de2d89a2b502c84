//! The calls on the path of a message. In C they are inline functions that call the driver through
//! a pointer in the opened device. They are reproduced here at the same cost.

use std::ffi::c_int;

use super::structures::{ibv_cq, ibv_qp, ibv_recv_wr, ibv_send_wr, ibv_wc};

/// Takes completions, as in `<infiniband/verbs.h>`.
///
/// # Safety
/// The queue is valid, and there is room for `entries`.
#[inline]
pub(in crate::ffi) unsafe fn ibv_poll_cq(
    queue: *mut ibv_cq,
    entries: c_int,
    into: *mut ibv_wc,
) -> c_int {
    // SAFETY: as the caller promises; drivers fill in the pointer when a device is opened.
    unsafe { ((*(*queue).context).ops.poll_cq)(queue, entries, into) }
}

/// Requests an event for the next completion, as in `<infiniband/verbs.h>`.
///
/// # Safety
/// The queue is valid.
#[inline]
pub(in crate::ffi) unsafe fn ibv_req_notify_cq(queue: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { ((*(*queue).context).ops.req_notify_cq)(queue, solicited_only) }
}

/// Posts a chain of requests, as in `<infiniband/verbs.h>`.
///
/// # Safety
/// The queue pair and the chain are valid, and inline bytes are readable.
#[inline]
pub(in crate::ffi) unsafe fn ibv_post_send(
    pair: *mut ibv_qp,
    chain: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: as above.
    unsafe { ((*(*pair).context).ops.post_send)(pair, chain, bad) }
}

/// Posts a chain of receives, as in `<infiniband/verbs.h>`.
///
/// # Safety
/// The queue pair and the chain are valid.
#[inline]
pub(in crate::ffi) unsafe fn ibv_post_recv(
    pair: *mut ibv_qp,
    chain: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: as above.
    unsafe { ((*(*pair).context).ops.post_recv)(pair, chain, bad) }
}
