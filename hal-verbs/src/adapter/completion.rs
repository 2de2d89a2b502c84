//! Completion queues.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Context, context};
#[cfg(feature = "fake")]
use crate::fake;
use crate::ffi;

/// How many completions are taken at once.
pub(crate) const BATCH: usize = 32;

/// One completion. Of a failed one only the name, the status and the vendor's error say anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The name that the request was posted with.
    pub(crate) name: u64,
    /// `enum ibv_wc_status`.
    pub(crate) status: u32,
    /// What the vendor adds to the status.
    pub(crate) vendor_error: u32,
    /// How many bytes came.
    pub(crate) bytes: u32,
    /// The value that came with it.
    pub(crate) immediate: Option<u32>,
}

/// A completion queue, and a descriptor that tells a sleeper of what comes into it. A clone is the
/// same one.
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
    /// A queue for at least `entries`, on the device's first vector.
    pub(crate) fn new(context: &Context, entries: u32) -> io::Result<Self> {
        Self::on_vector(context, entries, 0)
    }

    /// A queue for at least `entries`, whose events interrupt on a vector of the device: they count
    /// from zero.
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

    /// What asynchronous events name it by.
    pub(crate) fn id(&self) -> u64 {
        either!(&self.inner, queue => queue.id())
    }

    /// Takes what is there, at most [`BATCH`]; gives how many.
    ///
    /// # Errors
    /// If the queue ran over or the device is gone.
    #[inline]
    pub(crate) fn take(&self, into: &mut [Completion; BATCH]) -> io::Result<usize> {
        either!(&self.inner, queue => queue.take(into))
    }

    /// Asks that the next completion makes the descriptor readable. What came before the call does
    /// not.
    pub(crate) fn notify(&self) -> io::Result<()> {
        either!(&self.inner, queue => queue.notify())
    }

    /// Waits until the descriptor is readable, at most so long; false if it is not. For whoever has
    /// nothing else to do.
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

    /// Between two looks of whoever waits for what comes within microseconds.
    pub(crate) fn relax(&self) {
        #[cfg(feature = "fake")]
        if let Inner::Fake(queue) = &self.inner {
            queue.move_time();
        }
        std::hint::spin_loop();
    }

    /// Takes an event off the descriptor, if one is there; never blocks. True if one was.
    pub(crate) fn take_event(&self) -> bool {
        either!(&self.inner, queue => queue.take_event())
    }
}

impl AsFd for CompletionQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(&self.inner, queue => queue.as_fd())
    }
}
