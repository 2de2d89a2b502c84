//! From the polling thread to standard output, for commands that run as long as their group.
//!
//! Deliveries are formatted into a buffer, and a thread of its own writes out whatever is there:
//! one record at a low rate, at once; many at a high one, in one go. The buffer is bounded: a
//! member whose output has no reader holds back delivery, and with it the group, as any full pipe
//! does; for as long as its command allows.

use std::io::{self, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::exit::Failure;
use crate::print::print;

/// Prints the one result of a command: as a line of JSON, or as text.
pub fn print_result<R: Serialize>(
    json: bool,
    result: &R,
    text: impl FnOnce(&R) -> String,
) -> Result<(), Failure> {
    print(&mut io::stdout().lock(), json, result, text).map_err(|error| Failure::output(&error))
}

/// Prints one line for people on standard error.
pub fn print_notice(text: &str) {
    // Without standard error there is no other place for it.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Formatted bytes that may wait to be written. One record more may come on top.
const WAITING_MAX: usize = 4 << 20;

/// Bytes that are written at a time, so that a slow reader can be told from one that takes nothing.
const PART_BYTES: usize = 8 << 10;

/// Called with the reason why nothing can be written any more.
type Failed = Box<dyn FnOnce(io::Error) + Send>;

/// What waits to be written.
#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// The writing thread is busy with what it took.
    writing: bool,
    /// Bytes that were written in all.
    written: u64,
    /// Nothing is wanted any more: what comes is dropped.
    discard: bool,
}

struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// How long one waits for a reader that takes nothing; for ever without.
    patience: Option<Duration>,
    /// Nothing once it was reported.
    failed: Mutex<Option<Failed>>,
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

    /// Nothing can be written any more.
    fn fail(&self, error: io::Error) {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(failed) = failed {
            failed(error);
        }
    }

    /// Waits until there is room, or the output is discarded. Fails if the reader takes nothing for
    /// too long.
    fn wait_for_room<'w>(
        &self,
        mut waiting: MutexGuard<'w, Waiting>,
    ) -> Result<MutexGuard<'w, Waiting>, MutexGuard<'w, Waiting>> {
        let mut last = (waiting.written, Instant::now());
        while waiting.bytes.len() >= WAITING_MAX && !waiting.discard {
            self.changed.notify_all();
            let Some(patience) = self.patience else {
                waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = patience.saturating_sub(last.1.elapsed());
            if left.is_zero() {
                return Err(waiting);
            }
            (waiting, _) =
                self.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner);
            if waiting.written != last.0 {
                last = (waiting.written, Instant::now());
            }
        }
        Ok(waiting)
    }
}

/// The end that the command holds.
#[derive(Clone)]
pub struct Output(Arc<Shared>);

impl Output {
    /// Starts the writing thread. `failed` is called with an error of the output, or if no reader
    /// took anything of it for `patience` while it was full; what comes after that is dropped.
    pub fn start(
        patience: Option<Duration>,
        failed: impl FnOnce(io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let failed = Mutex::new(Some(Box::new(failed) as Failed));
        let (waiting, changed) = (Mutex::default(), Condvar::new());
        let output = Self(Arc::new(Shared { waiting, changed, patience, failed }));
        let shared = Arc::clone(&output.0);
        std::thread::Builder::new().name("tramontane-write".into()).spawn(move || {
            if let Err(error) = write_out(&shared) {
                shared.discard();
                shared.fail(error);
            }
        })?;
        Ok(output)
    }

    /// Adds what `add` writes of each item, waiting for room before each.
    pub fn put_each<I>(
        &self,
        items: impl IntoIterator<Item = I>,
        mut add: impl FnMut(I, &mut Vec<u8>),
    ) {
        let mut waiting = self.0.lock();
        let was_empty = waiting.bytes.is_empty();
        for item in items {
            waiting = self.0.wait_for_room(waiting).unwrap_or_else(|mut waiting| {
                waiting.discard = true;
                let what = "its reader took nothing for too long, and the other members do not wait longer";
                self.0.fail(io::Error::new(io::ErrorKind::TimedOut, what));
                waiting
            });
            add(item, &mut waiting.bytes);
        }
        if waiting.discard {
            waiting.bytes.clear();
        } else if was_empty && !waiting.bytes.is_empty() {
            self.0.changed.notify_all();
        }
    }

    /// Drops what waits and all that comes: threads that wait for room go on.
    pub fn discard(&self) {
        self.0.discard();
    }

    /// Bytes that were written in all.
    pub fn written(&self) -> u64 {
        self.0.lock().written
    }

    /// Waits until all is written, at most the given time. True if it is.
    pub fn drain(&self, timeout: Duration) -> bool {
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
        for part in taken.chunks(PART_BYTES) {
            output.write_all(part)?;
            output.flush()?;
            shared.lock().written += part.len() as u64;
        }
        taken.clear();
    }
}
