//! Connections and messages that other threads hand to a thread with connections.

use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::wakeup::Wakeup;

/// The maximum number of bytes of published messages that wait for a thread. Their subscribers are
/// disconnected beyond it, so that none of them misses a message without a sign.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// A thread's inbox.
#[derive(Debug)]
pub(crate) struct ThreadInbox {
    received: Mutex<InboxContents>,
    wakeup: Arc<Wakeup>,
}

/// Everything that has arrived since the thread looked last.
#[derive(Debug, Default)]
pub(crate) struct InboxContents {
    /// New connections.
    pub(crate) streams: Vec<TcpStream>,
    /// Published messages, each with the token of its subscriber.
    pub(crate) messages: Vec<(u64, Arc<[u8]>)>,
    message_bytes: usize,
    /// Subscribers for whose messages there was no room.
    pub(crate) overrun: Vec<u64>,
}

impl ThreadInbox {
    pub(crate) fn new(wakeup: Arc<Wakeup>) -> Arc<Self> {
        Arc::new(Self { received: Mutex::default(), wakeup })
    }

    fn lock(&self) -> MutexGuard<'_, InboxContents> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push_stream(&self, stream: TcpStream) {
        self.lock().streams.push(stream);
        self.wakeup.notify();
    }

    pub(crate) fn push_message(&self, token: u64, message: &Arc<[u8]>) {
        let mut received = self.lock();
        if received.message_bytes + message.len() > MESSAGE_BYTES_MAX {
            if received.overrun.last() != Some(&token) {
                received.overrun.push(token);
            }
        } else {
            received.message_bytes += message.len();
            received.messages.push((token, Arc::clone(message)));
        }
        drop(received);
        self.wakeup.notify();
    }

    /// Takes everything.
    pub(crate) fn take(&self) -> InboxContents {
        std::mem::take(&mut self.lock())
    }
}
