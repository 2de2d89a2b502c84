//! What a member takes of a root's messages: that each is what was sent, and when it was whole.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use super::clock::{is_marked, now_ns};
use super::member::{SAID_BYTES, said};
use super::pause::Pauser;
use crate::bench::BenchError;
use crate::blocks::{Buffer, Ended, Group, Recipient};

/// Gives buffers back.
pub(super) struct Back(pub(super) Sender<Buffer>);

impl Recipient for Back {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        None
    }

    fn completed(&mut self, _: u64, buffer: Buffer, _: usize) {
        // Whoever takes them may be through.
        let _ = self.0.send(buffer);
    }
}

/// What was received of a root.
#[derive(Debug, Default)]
pub(super) struct Taken {
    messages: Mutex<u64>,
    is_wrong: AtomicBool,
}

impl Taken {
    /// Whether it was so many messages, each as it was sent.
    pub(super) fn check(&self, total: u64, ended: Option<Ended>) -> Result<(), BenchError> {
        if self.is_wrong.load(Ordering::Relaxed) {
            return Err(BenchError::Broken("a message came that is not what was sent".into()));
        }
        let messages = *self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages < total { Err(said(ended.as_ref())) } else { Ok(()) }
    }
}

/// Takes a root's messages, and says when.
pub(super) struct Taking {
    pub(super) buffer: Option<Buffer>,
    pub(super) taken: Arc<Taken>,
    /// In which it says when it had a message, and the buffers for that.
    pub(super) group: Group,
    pub(super) free: Receiver<Buffer>,
    /// Messages before those that are measured.
    pub(super) warm_ups: u64,
    /// What makes it pause at the first block of those that are measured, if it is delayed.
    pub(super) pauser: Option<Pauser>,
}

impl Recipient for Taking {
    fn incoming(&mut self, message: u64, _: usize) -> Option<Buffer> {
        if let (Some(pauser), true) = (&self.pauser, message >= self.warm_ups) {
            pauser.pause();
        }
        self.buffer.take()
    }

    fn completed(&mut self, message: u64, buffer: Buffer, bytes: usize) {
        let now = now_ns();
        if !buffer.get(..bytes).is_some_and(|got| is_marked(got, message)) {
            self.taken.is_wrong.store(true, Ordering::Relaxed);
        }
        self.buffer = Some(buffer);
        *self.taken.messages.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        // There is one more than messages under way.
        if let Ok(mut said) = self.free.try_recv() {
            said[..SAID_BYTES].copy_from_slice(&now.to_ne_bytes());
            let _ = self.group.send(said, SAID_BYTES);
        }
    }
}
