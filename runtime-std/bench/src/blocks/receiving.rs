//! The receiving side of a member for one root: checks that each message arrives unchanged, and
//! records when it was complete.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use super::completions::REPORT_BYTES;
use super::mark::is_marked;
use super::task::ended_early;
use crate::error::BenchError;
use tramontane_local::clock::now_ns;
use tramontane_runtime::blocks::{Buffer, Ended, Group, Recipient};

/// Returns buffers.
pub(super) struct ReturnBuffers(pub(super) Sender<Buffer>);

impl Recipient for ReturnBuffers {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        None
    }

    fn completed(&mut self, _: u64, buffer: Buffer, _: usize) {
        // The sender that takes the buffers may have finished.
        let _ = self.0.send(buffer);
    }
}

/// The messages received from a root.
#[derive(Debug, Default)]
pub(super) struct RootMessages {
    messages: Mutex<u64>,
    is_wrong: AtomicBool,
}

impl RootMessages {
    /// Checks that `total` messages have arrived, each unchanged.
    pub(super) fn check(&self, total: u64, ended: Option<Ended>) -> Result<(), BenchError> {
        if self.is_wrong.load(Ordering::Relaxed) {
            return Err(BenchError::Broken(
                "a message arrived with different bytes than were sent".into(),
            ));
        }
        let messages = *self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages < total { Err(ended_early(ended.as_ref())) } else { Ok(()) }
    }
}

/// Takes a root's messages, and reports their times.
pub(super) struct Receiving {
    pub(super) buffer: Option<Buffer>,
    pub(super) received: Arc<RootMessages>,
    /// The group in which the member reports that it has a message, and the buffers for the
    /// reports.
    pub(super) group: Group,
    pub(super) free: Receiver<Buffer>,
}

impl Recipient for Receiving {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        self.buffer.take()
    }

    fn completed(&mut self, message: u64, buffer: Buffer, bytes: usize) {
        let now = now_ns();
        if !buffer.get(..bytes).is_some_and(|got| is_marked(got, message)) {
            self.received.is_wrong.store(true, Ordering::Relaxed);
        }
        self.buffer = Some(buffer);
        *self.received.messages.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        // There is one more buffer than there are messages in flight.
        if let Ok(mut report) = self.free.try_recv() {
            report[..REPORT_BYTES].copy_from_slice(&now.to_ne_bytes());
            let _ = self.group.send(report, REPORT_BYTES);
        }
    }
}
