//! Wakes a thread that waits for its connections.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use rustix::event::{EventfdFlags, eventfd};

/// A thread's wakeup. Waking costs a system call only if the thread sleeps.
///
/// # Invariant
/// The thread announces its sleep before it looks for a notification, and others notify before they
/// look whether it sleeps. So at least one of the two sees the other.
#[derive(Debug)]
pub(crate) struct Wakeup {
    event: OwnedFd,
    is_notified: AtomicBool,
    is_asleep: AtomicBool,
}

impl Wakeup {
    pub(crate) fn new() -> std::io::Result<Arc<Self>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (is_notified, is_asleep) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Arc::new(Self { event, is_notified, is_asleep }))
    }

    /// Announces that the thread is about to sleep. Returns false if it must not.
    pub(crate) fn begin_sleep(&self) -> bool {
        self.is_asleep.store(true, Ordering::SeqCst);
        !self.is_notified.load(Ordering::SeqCst)
    }

    /// Ends the sleep, and forgets that there was a notification. What it was about is looked at
    /// next.
    pub(crate) fn end_sleep(&self) {
        self.is_asleep.store(false, Ordering::SeqCst);
        self.is_notified.store(false, Ordering::SeqCst);
    }

    /// Takes the event that ended a sleep.
    pub(crate) fn drain(&self) {
        // There may be nothing to read.
        let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }

    pub(crate) fn notify(&self) {
        self.is_notified.store(true, Ordering::SeqCst);
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            // A counter that is full wakes too.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.notify();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.notify();
    }
}
