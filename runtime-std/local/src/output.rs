//! Output from the polling thread to standard output, for commands that run as long as their group.
//!
//! Deliveries are formatted into a buffer, and a separate thread writes out its contents: at a low
//! rate each record immediately, at a high rate many in one call. The buffer is bounded. A member
//! whose output is not read delays its deliveries, and thereby the group, as any full pipe would,
//! for as long as its command permits.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::exit::Failure;
use crate::print::print;

/// Prints the only result of a command as a line of JSON or as text.
pub fn print_result<R: Serialize>(
    json: bool,
    result: &R,
    text: impl FnOnce(&R) -> String,
) -> Result<(), Failure> {
    print(&mut io::stdout().lock(), json, result, text).map_err(|error| Failure::output(&error))
}

/// Prints a notice for people on standard error.
pub fn print_notice(text: &str) {
    // If standard error fails, there is nowhere else to write.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Maximum number of formatted bytes that wait to be written. One more record may exceed this
/// limit.
const WAITING_MAX: usize = 4 << 20;

/// Number of bytes per write, small enough to distinguish a slow reader from one that reads
/// nothing.
const PART_BYTES: usize = 8 << 10;

/// Called with the reason that the output can no longer be written.
type Failed = Box<dyn FnOnce(io::Error) + Send>;

/// The output that is waiting to be written.
#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Whether the writing thread is busy with the bytes that it has taken.
    writing: bool,
    /// Total number of bytes written.
    written: u64,
    /// Whether further output is dropped.
    discard: bool,
}

struct SharedOutput {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// Time limit for waiting on a reader that reads nothing; `None` waits forever.
    patience: Option<Duration>,
    /// `None` once the failure has been reported.
    failed: Mutex<Option<Failed>>,
}

impl SharedOutput {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn discard(&self) {
        let mut waiting = self.lock();
        waiting.discard = true;
        waiting.bytes.clear();
        self.changed.notify_all();
    }

    /// Records that the output can no longer be written.
    fn fail(&self, error: io::Error) {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(failed) = failed {
            failed(error);
        }
    }

    /// Waits until there is room, or the output is discarded. Fails if the reader reads nothing for
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

/// A command's handle to its output.
#[derive(Clone)]
pub struct Output(Arc<SharedOutput>);

impl Output {
    /// Starts the writing thread. `failed` is called with an error of the output, or if the reader
    /// has read nothing for `patience` while the buffer was full. Later output is dropped.
    pub fn start(
        patience: Option<Duration>,
        failed: impl FnOnce(io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let failed = Mutex::new(Some(Box::new(failed) as Failed));
        let (waiting, changed) = (Mutex::default(), Condvar::new());
        let output = Self(Arc::new(SharedOutput { waiting, changed, patience, failed }));
        let shared = Arc::clone(&output.0);
        std::thread::Builder::new().name("tramontane-write".into()).spawn(move || {
            if let Err(error) = write_out(&shared) {
                shared.discard();
                shared.fail(error);
            }
        })?;
        Ok(output)
    }

    /// Adds the output that `add` writes for each item, waiting for room before each item.
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
                let what = "its reader read nothing for too long, and the other members do not \
                            wait any longer";
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

    /// Drops all waiting and later output, so that threads waiting for room can continue.
    pub fn discard(&self) {
        self.0.discard();
    }

    /// Returns the total number of bytes written.
    pub fn written(&self) -> u64 {
        self.0.lock().written
    }

    /// Waits until everything has been written, for at most `timeout`. Returns whether it has.
    pub fn drain(&self, timeout: Duration) -> bool {
        let under_way = |waiting: &mut Waiting| !waiting.bytes.is_empty() || waiting.writing;
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), timeout, under_way);
        let (waiting, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
        !timed_out.timed_out() && !waiting.discard
    }
}

/// Runs the writing thread.
fn write_out(shared: &SharedOutput) -> io::Result<()> {
    let mut taken = Vec::new();
    // The standard output's own buffer would split each part at its last newline.
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
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
            shared.lock().written += part.len() as u64;
        }
        taken.clear();
    }
}
