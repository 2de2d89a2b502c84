//! What a root hears of its receivers: when each had which message.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::blocks::{Buffer, Recipient};

/// Between two looks whether the group has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// One message, as far as it was heard of.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    receivers: usize,
    last_ns: u64,
}

/// What was heard, by message.
#[derive(Debug)]
pub(super) struct Hearing {
    receivers: usize,
    heard: Mutex<Vec<Heard>>,
    changed: Condvar,
}

impl Hearing {
    pub(super) fn new(receivers: usize) -> Self {
        Self { receivers, heard: Mutex::new(Vec::new()), changed: Condvar::new() }
    }

    fn tell(&self, message: usize, at_ns: u64) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.len() <= message {
            heard.resize(message + 1, Heard::default());
        }
        let of_message = &mut heard[message];
        of_message.receivers += 1;
        of_message.last_ns = of_message.last_ns.max(at_ns);
        // Only the last word wakes anybody: the others are still at work.
        if of_message.receivers == self.receivers {
            self.changed.notify_all();
        }
    }

    /// Waits until all have a message: when the last had it. None if that does not come.
    pub(super) fn wait(
        &self,
        message: usize,
        limit: Duration,
        is_over: impl Fn() -> bool,
    ) -> Option<u64> {
        let until = Instant::now() + limit;
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match heard.get(message) {
                Some(of_message) if of_message.receivers == self.receivers => {
                    return Some(of_message.last_ns);
                }
                _ if is_over() || Instant::now() >= until => return None,
                _ => {}
            }
            let waited = self.changed.wait_timeout(heard, LOOK_INTERVAL);
            heard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Hears one receiver.
pub(super) struct Ear {
    hearing: Arc<Hearing>,
    buffer: Option<Buffer>,
}

impl Ear {
    pub(super) fn new(hearing: Arc<Hearing>, buffer: Buffer) -> Self {
        Self { hearing, buffer: Some(buffer) }
    }
}

impl Recipient for Ear {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        self.buffer.take()
    }

    fn completed(&mut self, message: u64, buffer: Buffer, _: usize) {
        let at_ns = buffer.first_chunk().map(|said| u64::from_ne_bytes(*said));
        self.hearing
            .tell(usize::try_from(message).unwrap_or(usize::MAX), at_ns.unwrap_or(u64::MAX));
        self.buffer = Some(buffer);
    }
}
