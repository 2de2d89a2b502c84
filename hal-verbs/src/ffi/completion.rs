//! A completion queue with its event channel.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use super::libibverbs::{
    ibv_ack_cq_events, ibv_comp_channel, ibv_cq, ibv_create_comp_channel, ibv_create_cq,
    ibv_destroy_comp_channel, ibv_destroy_cq, ibv_get_cq_event, ibv_poll_cq, ibv_req_notify_cq,
    ibv_wc, ibv_wc_flags::IBV_WC_WITH_IMM,
};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::{Context, check, last_error};
use crate::adapter::{BATCH, Completion};

/// A completion queue, and a descriptor that wakes a sleeping thread when a completion arrives.
#[derive(Debug)]
pub(crate) struct CompletionQueue {
    raw: NonNull<ibv_cq>,
    channel: NonNull<ibv_comp_channel>,
    _context: Arc<Context>,
}

// SAFETY: libibverbs may be called on one queue from several threads.
unsafe impl Send for CompletionQueue {}
// SAFETY: as for `Send`.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// Creates a queue for at least `entries` entries, whose events interrupt on this vector of the
    /// device.
    pub(crate) fn new(context: &Arc<Context>, entries: u32, vector: u32) -> io::Result<Self> {
        let vector = i32::try_from(vector).map_err(|_| io::ErrorKind::InvalidInput)?;
        let entries = i32::try_from(entries).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the context is open.
        let channel = unsafe { ibv_create_comp_channel(context.raw()) };
        let channel = NonNull::new(channel).ok_or_else(last_error)?;
        // SAFETY: context and channel are valid; there is no user data; the library refuses a
        // vector that does not exist.
        let raw = unsafe {
            ibv_create_cq(context.raw(), entries, std::ptr::null_mut(), channel.as_ptr(), vector)
        };
        let Some(raw) = NonNull::new(raw) else {
            let error = last_error();
            // SAFETY: the channel was created above, and nothing uses it.
            unsafe { ibv_destroy_comp_channel(channel.as_ptr()) };
            return Err(error);
        };
        let queue = Self { raw, channel, _context: Arc::clone(context) };
        let flags = fcntl_getfl(queue.as_fd())?;
        fcntl_setfl(queue.as_fd(), flags | OFlags::NONBLOCK)?;
        Ok(queue)
    }

    /// Returns the queue's id in asynchronous events.
    pub(crate) fn id(&self) -> u64 {
        id_of(self.raw())
    }

    pub(super) const fn raw(&self) -> *mut ibv_cq {
        self.raw.as_ptr()
    }

    /// Takes the waiting completions, at most [`BATCH`], and returns their number.
    ///
    /// # Errors
    /// Fails if the queue has overflowed or the device has been lost.
    pub(crate) fn take(&self, into: &mut [Completion; BATCH]) -> io::Result<usize> {
        let mut raw = [const { MaybeUninit::<ibv_wc>::uninit() }; BATCH];
        const ENTRIES: i32 = 32;
        const { assert!(ENTRIES.unsigned_abs() as usize == BATCH) };
        // SAFETY: there is room for the requested number; the queue is valid.
        let taken = unsafe { ibv_poll_cq(self.raw(), ENTRIES, raw.as_mut_ptr().cast()) };
        let taken = usize::try_from(taken).map_err(|_| last_error())?.min(BATCH);
        for (raw, into) in raw.iter().zip(into.iter_mut()).take(taken) {
            // SAFETY: the call filled the first `taken`.
            let raw = unsafe { raw.assume_init_ref() };
            let is_good = raw.status == 0;
            let has_immediate = is_good && raw.wc_flags & IBV_WC_WITH_IMM != 0;
            *into = Completion {
                name: raw.wr_id,
                status: raw.status,
                vendor_error: raw.vendor_err,
                bytes: if is_good { raw.byte_len } else { 0 },
                // The flag means that this is an immediate value rather than a key.
                immediate: has_immediate.then(|| u32::from_be(raw.imm_data)),
            };
        }
        Ok(taken)
    }

    /// Makes the next completion turn the descriptor readable. Earlier completions do not.
    pub(crate) fn notify(&self) -> io::Result<()> {
        // SAFETY: the queue is valid.
        check(unsafe { ibv_req_notify_cq(self.raw(), 0) })
    }

    /// Takes an event from the descriptor without blocking. Returns whether there was one.
    pub(crate) fn take_event(&self) -> bool {
        let mut queue = std::ptr::null_mut();
        let mut user = std::ptr::null_mut();
        // SAFETY: the channel is valid and does not block; both results are writable.
        if unsafe { ibv_get_cq_event(self.channel.as_ptr(), &raw mut queue, &raw mut user) } != 0 {
            return false;
        }
        // SAFETY: this is the channel's only queue. Each event is acknowledged once; otherwise
        // destruction would block.
        unsafe { ibv_ack_cq_events(queue, 1) };
        true
    }
}

/// Returns a queue's id in asynchronous events.
pub(super) fn id_of(raw: *mut ibv_cq) -> u64 {
    u64::try_from(raw.addr()).unwrap_or(0)
}

impl AsFd for CompletionQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel's descriptor is open while `self` exists.
        unsafe { BorrowedFd::borrow_raw(self.channel.as_ref().fd) }
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: each is destroyed once, the queue first; the queue pairs that held it have been
        // destroyed; all events have been acknowledged.
        unsafe {
            ibv_destroy_cq(self.raw());
            ibv_destroy_comp_channel(self.channel.as_ptr());
        }
    }
}
