//! Completion queues.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{BATCH, Completion, Context, context};
#[cfg(feature = "fake")]
use crate::fake;
use crate::ffi;

/// A completion queue, and a descriptor that wakes a sleeping thread when a completion arrives. A
/// clone refers to the same queue.
#[derive(Clone, Debug)]
pub(crate) struct CompletionQueue {
    inner: Inner,
}

#[derive(Clone, Debug)]
pub(super) enum Inner {
    Library(Arc<ffi::CompletionQueue>),
    #[cfg(feature = "fake")]
    Fake(fake::CompletionQueue),
}

impl CompletionQueue {
    /// Creates a queue for at least `entries` entries, on the device's first vector.
    pub(crate) fn new(context: &Context, entries: u32) -> io::Result<Self> {
        Self::on_vector(context, entries, 0)
    }

    /// Creates a queue for at least `entries` entries, whose events interrupt on this vector of the
    /// device, counted from zero.
    pub(crate) fn on_vector(context: &Context, entries: u32, vector: u32) -> io::Result<Self> {
        let inner = match context.inner() {
            context::Inner::Library(context) => {
                Inner::Library(Arc::new(ffi::CompletionQueue::new(context, entries, vector)?))
            }
            #[cfg(feature = "fake")]
            context::Inner::Fake(context) => {
                Inner::Fake(fake::CompletionQueue::on_vector(context, entries, vector)?)
            }
        };
        Ok(Self { inner })
    }

    pub(super) const fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Returns the queue's id in asynchronous events.
    pub(crate) fn id(&self) -> u64 {
        either!(&self.inner, queue => queue.id())
    }

    /// Takes the waiting completions, at most [`BATCH`], and returns their number.
    ///
    /// # Errors
    /// Fails if the queue has overflowed or the device has been lost.
    #[inline]
    pub(crate) fn take(&self, into: &mut [Completion; BATCH]) -> io::Result<usize> {
        either!(&self.inner, queue => queue.take(into))
    }

    /// Makes the next completion turn the descriptor readable. Earlier completions do not.
    pub(crate) fn notify(&self) -> io::Result<()> {
        either!(&self.inner, queue => queue.notify())
    }

    /// Waits until the descriptor is readable, for at most `timeout`, and returns whether it is.
    /// This is for callers that have nothing else to do.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        #[cfg(feature = "fake")]
        if let Inner::Fake(queue) = &self.inner
            && let Some(is_moved) = queue.move_time()
        {
            return is_moved;
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let mut descriptors = [PollFd::new(self, PollFlags::IN)];
        poll(&mut descriptors, Some(&timeout)).is_ok_and(|ready| ready > 0)
    }

    /// Takes an event from the descriptor without blocking. Returns whether there was one.
    pub(crate) fn take_event(&self) -> bool {
        either!(&self.inner, queue => queue.take_event())
    }
}

impl AsFd for CompletionQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(&self.inner, queue => queue.as_fd())
    }
}
