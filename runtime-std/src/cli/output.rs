//! From the polling thread to standard output, for commands that run as long as their group.
//!
//! Deliveries are formatted into a buffer, and a thread of its own writes out whatever is there: one record
//! at a low rate, at once; many at a high one, in one go. The buffer is bounded: a member whose output nobody
//! takes holds back delivery, and with it the group, as any full pipe does.

use std::io::{self, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Formatted bytes that may wait to be written. One record more may come on top.
const WAITING_MAX: usize = 4 << 20;

/// What waits to be written.
#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// The writing thread is busy with what it took.
    writing: bool,
    /// Nothing is wanted any more: what comes is dropped.
    discard: bool,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn discard(&self) {
        let mut waiting = self.lock();
        waiting.discard = true;
        waiting.bytes.clear();
        self.changed.notify_all();
    }
}

/// The end that the command holds.
#[derive(Clone, Debug)]
pub(super) struct Output(Arc<Shared>);

impl Output {
    /// Starts the writing thread. `failed` is told of an error of the output; what comes after it is dropped.
    pub(super) fn start(failed: impl FnOnce(io::Error) + Send + 'static) -> io::Result<Self> {
        let output = Self(Arc::default());
        let shared = Arc::clone(&output.0);
        std::thread::Builder::new().name("tramontane-write".into()).spawn(move || {
            if let Err(error) = write_out(&shared) {
                shared.discard();
                failed(error);
            }
        })?;
        Ok(output)
    }

    /// Adds what `add` writes of each item, waiting for room before each.
    pub(super) fn put_each<I>(
        &self,
        items: impl IntoIterator<Item = I>,
        mut add: impl FnMut(I, &mut Vec<u8>),
    ) {
        let mut waiting = self.0.lock();
        let was_empty = waiting.bytes.is_empty();
        for item in items {
            while waiting.bytes.len() >= WAITING_MAX && !waiting.discard {
                self.0.changed.notify_all();
                waiting = self.0.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            add(item, &mut waiting.bytes);
        }
        if waiting.discard {
            waiting.bytes.clear();
        } else if was_empty && !waiting.bytes.is_empty() {
            self.0.changed.notify_all();
        }
    }

    /// Drops what waits and all that comes: whoever waits for room goes on.
    pub(super) fn discard(&self) {
        self.0.discard();
    }

    /// Waits until all is written, at most so long. True if it is.
    pub(super) fn drain(&self, timeout: Duration) -> bool {
        let under_way = |waiting: &mut Waiting| !waiting.bytes.is_empty() || waiting.writing;
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), timeout, under_way);
        let (waiting, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
        !timed_out.timed_out() && !waiting.discard
    }
}

/// The writing thread.
fn write_out(shared: &Shared) -> io::Result<()> {
    let mut taken = Vec::new();
    let mut output = io::stdout().lock();
    loop {
        {
            let mut waiting = shared.lock();
            waiting.writing = false;
            shared.changed.notify_all();
            while waiting.bytes.is_empty() {
                waiting = shared.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            std::mem::swap(&mut waiting.bytes, &mut taken);
            waiting.writing = true;
            shared.changed.notify_all();
        }
        output.write_all(&taken)?;
        output.flush()?;
        taken.clear();
    }
}
