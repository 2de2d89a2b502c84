//! Lets a thread wake another thread of its process that waits for sockets.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Wakes the thread that polls it. All clones wake the same thread.
#[derive(Clone, Debug)]
pub struct Wakeup(Arc<OwnedFd>);

impl Wakeup {
    /// Creates a wakeup that has not been rung.
    ///
    /// # Errors
    /// Fails with the system's error if no descriptor is available.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Ends the current or the next wait. Never blocks.
    pub fn ring(&self) {
        // This fails only after 2^64 rings without a read.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Clears all rings so far.
    pub fn take(&self) {
        // The read fails if there was no ring.
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
