//! What a member receives of a root's messages: that each is what was sent, and when it was whole.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use super::completions::REPORT_BYTES;
use super::mark::is_marked;
use super::pause::Pauser;
use super::task::ended_early;
use crate::error::BenchError;
use tramontane_local::clock::now_ns;
use tramontane_runtime::blocks::{Buffer, Ended, Group, Recipient};

/// Gives buffers back.
pub(super) struct ReturnBuffers(pub(super) Sender<Buffer>);

impl Recipient for ReturnBuffers {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        None
    }

    fn completed(&mut self, _: u64, buffer: Buffer, _: usize) {
        // The sender that takes them may have finished.
        let _ = self.0.send(buffer);
    }
}

/// What was received of a root.
#[derive(Debug, Default)]
pub(super) struct Received {
    messages: Mutex<u64>,
    is_wrong: AtomicBool,
}

impl Received {
    /// Whether this number of messages came, each as it was sent.
    pub(super) fn check(&self, total: u64, ended: Option<Ended>) -> Result<(), BenchError> {
        if self.is_wrong.load(Ordering::Relaxed) {
            return Err(BenchError::Broken(
                "a message arrived with other bytes than were sent".into(),
            ));
        }
        let messages = *self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages < total { Err(ended_early(ended.as_ref())) } else { Ok(()) }
    }
}

/// Takes a root's messages, and reports when.
pub(super) struct Receiving {
    pub(super) buffer: Option<Buffer>,
    pub(super) received: Arc<Received>,
    /// In which it reports when it had a message, and the buffers for that.
    pub(super) group: Group,
    pub(super) free: Receiver<Buffer>,
    /// Messages before those that are measured.
    pub(super) warm_ups: u64,
    /// What makes it pause at the first block of those that are measured, if it is delayed.
    pub(super) pauser: Option<Pauser>,
}

impl Recipient for Receiving {
    fn incoming(&mut self, message: u64, _: usize) -> Option<Buffer> {
        if let (Some(pauser), true) = (&self.pauser, message >= self.warm_ups) {
            pauser.pause();
        }
        self.buffer.take()
    }

    fn completed(&mut self, message: u64, buffer: Buffer, bytes: usize) {
        let now = now_ns();
        if !buffer.get(..bytes).is_some_and(|got| is_marked(got, message)) {
            self.received.is_wrong.store(true, Ordering::Relaxed);
        }
        self.buffer = Some(buffer);
        *self.received.messages.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        // There is one more than messages under way.
        if let Ok(mut report) = self.free.try_recv() {
            report[..REPORT_BYTES].copy_from_slice(&now.to_ne_bytes());
            let _ = self.group.send(report, REPORT_BYTES);
        }
    }
}
