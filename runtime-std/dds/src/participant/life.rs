//! The lifetime of a participant and of its threads.

use std::thread::JoinHandle;

use tramontane_client::ConnectError;

use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// The state that a participant shares with its threads.
#[derive(Debug, Default)]
pub(super) struct ParticipantLife {
    has_ended: AtomicBool,
    /// The reason that no member accepts the participant any longer.
    lost: Mutex<Option<ConnectError>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl ParticipantLife {
    /// Starts a thread. The thread must check from time to time whether the participant has ended.
    pub(super) fn spawn(&self, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name("tramontane-dds-f".into()).spawn(body)?;
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// Ends the participant, and notifies the threads.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Waits for the threads. If a listener ends its participant, this waits for all threads except
    /// its own.
    pub(super) fn join(&self) {
        let own = std::thread::current().id();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            if thread.thread().id() != own {
                // A panic of the thread has already been reported.
                let _ = thread.join();
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Returns the reason that no member accepts the participant any longer.
    pub(super) fn lost(&self) -> Option<ConnectError> {
        lock(&self.lost).clone()
    }

    pub(super) fn lose(&self, why: ConnectError) {
        lock(&self.lost).get_or_insert(why);
    }
}
