//! How long a participant is there, and the threads that are there as long.

use std::thread::JoinHandle;

use tramontane_client::OpenError;

use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// What the threads share with their participant.
#[derive(Debug, Default)]
pub(super) struct Life {
    has_ended: AtomicBool,
    /// Why no member takes it any more.
    lost: Mutex<Option<OpenError>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Life {
    /// Starts a thread, which looks from time to time whether the participant has ended.
    pub(super) fn spawn(&self, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name("tramontane-dds-f".into()).spawn(body)?;
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// The participant ends: tells the threads.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Waits for the threads. A listener that ends its participant waits for those but its own.
    pub(super) fn join(&self) {
        let own = std::thread::current().id();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            if thread.thread().id() != own {
                // A panic of it has been reported by itself.
                let _ = thread.join();
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Why no member takes it any more.
    pub(super) fn lost(&self) -> Option<OpenError> {
        lock(&self.lost).clone()
    }

    pub(super) fn lose(&self, why: OpenError) {
        lock(&self.lost).get_or_insert(why);
    }
}
