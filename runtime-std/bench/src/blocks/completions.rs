//! The times at which each receiver had each of a root's messages. Each receiver reports them in a
//! group of its own.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tramontane_runtime::blocks::{Buffer, Recipient};

/// Interval between checks whether the group has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Size of a report in bytes: one time.
pub(super) const REPORT_BYTES: usize = 8;

/// The reports on one message.
#[derive(Clone, Copy, Debug, Default)]
struct Completion {
    receivers: usize,
    last_ns: u64,
}

/// The reports, by message.
#[derive(Debug)]
pub(super) struct Completions {
    receivers: usize,
    reported: Mutex<Vec<Completion>>,
    changed: Condvar,
}

impl Completions {
    pub(super) fn new(receivers: usize) -> Self {
        Self { receivers, reported: Mutex::new(Vec::new()), changed: Condvar::new() }
    }

    fn note(&self, message: usize, at_ns: u64) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() <= message {
            reported.resize(message + 1, Completion::default());
        }
        let of_message = &mut reported[message];
        of_message.receivers += 1;
        of_message.last_ns = of_message.last_ns.max(at_ns);
        // Only the last report wakes the root, because the other receivers are still busy.
        if of_message.receivers == self.receivers {
            self.changed.notify_all();
        }
    }

    /// Waits until all receivers have a message. Returns the time at which the last receiver had
    /// it, or `None` if that does not happen.
    pub(super) fn wait(
        &self,
        message: usize,
        limit: Duration,
        is_over: impl Fn() -> bool,
    ) -> Option<u64> {
        let until = Instant::now() + limit;
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match reported.get(message) {
                Some(of_message) if of_message.receivers == self.receivers => {
                    return Some(of_message.last_ns);
                }
                _ if is_over() || Instant::now() >= until => return None,
                _ => {}
            }
            let waited = self.changed.wait_timeout(reported, LOOK_INTERVAL);
            reported = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Reads the reports of one receiver.
pub(super) struct ReportReader {
    completions: Arc<Completions>,
    buffer: Option<Buffer>,
}

impl ReportReader {
    pub(super) fn new(completions: Arc<Completions>, buffer: Buffer) -> Self {
        Self { completions, buffer: Some(buffer) }
    }
}

impl Recipient for ReportReader {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        self.buffer.take()
    }

    fn completed(&mut self, message: u64, buffer: Buffer, _: usize) {
        let at_ns = buffer.first_chunk().map(|report| u64::from_ne_bytes(*report));
        self.completions
            .note(usize::try_from(message).unwrap_or(usize::MAX), at_ns.unwrap_or(u64::MAX));
        self.buffer = Some(buffer);
    }
}
