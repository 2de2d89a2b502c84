//! The queue between application threads and the engine. It carries the bytes of large messages to
//! the engine, and free buffers back.
//!
//! # Invariant
//! Queued bytes are in the same order as the slots that describe them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::pool::Pool;
use crate::block_transfer::buffer::Buffer;
use crate::fabric::{AnyBlockStore, BlockMemoryError};

/// The bytes of a large message whose slot has been taken.
#[derive(Debug)]
pub(super) struct QueuedBytes {
    /// The message's number, counted as in
    /// [`Ordinal`](crate::group::send::receipt::ordinal::Ordinal).
    pub(super) ordinal: u64,
    pub(super) buffer: Buffer,
    pub(super) bytes: usize,
}

/// The senders' side of a subgroup that allows large messages.
#[derive(Debug)]
pub(crate) struct LargeSendQueue {
    /// The maximum message size, in bytes.
    pub(super) bytes_max: usize,
    /// The maximum number of messages in flight.
    window: usize,
    store: AnyBlockStore,
    /// Locked while a slot is taken, so that slots and bytes are in the same order.
    way: Mutex<Sender<QueuedBytes>>,
    under_way: AtomicUsize,
    /// Buffers for reuse, at most as many as may be in flight.
    spent: Mutex<Pool>,
}

/// The engine's side of the queue.
#[derive(Debug)]
pub(crate) struct LargeSendQueueReader {
    send_queue: Arc<LargeSendQueue>,
    queue: Receiver<QueuedBytes>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LargeSendQueue {
    /// Creates both sides of a queue.
    pub(crate) fn new(
        bytes_max: usize,
        window: usize,
        store: AnyBlockStore,
    ) -> (Arc<Self>, LargeSendQueueReader) {
        let (sender, queue) = channel();
        let send_queue = Arc::new(Self {
            bytes_max,
            window,
            way: Mutex::new(sender),
            under_way: AtomicUsize::new(0),
            // No buffer is longer than the largest message, so limiting the number of buffers also
            // limits their total size.
            spent: Mutex::new(Pool::new(store.clone(), window, usize::MAX)),
            store,
        });
        (Arc::clone(&send_queue), LargeSendQueueReader { send_queue, queue })
    }

    pub(super) fn buffer(&self, bytes: usize) -> Result<Buffer, BlockMemoryError> {
        // The engine returns buffers under this lock, so memory is allocated only after the lock
        // has been released.
        let found = locked(&self.spent).find(bytes);
        found.map_or_else(|| Buffer::new(&self.store, bytes), Ok)
    }

    /// Returns the turn to send one message, if there is room. Its holder takes a slot and queues
    /// the bytes before any other sender can.
    pub(super) fn enter(&self) -> Option<SendTurn<'_>> {
        let way = locked(&self.way);
        (self.under_way.load(Ordering::Relaxed) < self.window)
            .then_some(SendTurn { send_queue: self, way })
    }
}

/// The turn to send one message.
pub(super) struct SendTurn<'g> {
    send_queue: &'g LargeSendQueue,
    way: MutexGuard<'g, Sender<QueuedBytes>>,
}

impl SendTurn<'_> {
    /// Queues the bytes of a message. If the engine has ended, the bytes are returned.
    pub(super) fn hand_over(self, queued: QueuedBytes) -> Result<(), QueuedBytes> {
        self.send_queue.under_way.fetch_add(1, Ordering::Relaxed);
        self.way.send(queued).map_err(|refused| refused.0)
    }
}

impl LargeSendQueueReader {
    pub(super) fn take(&self) -> Option<QueuedBytes> {
        self.queue.try_recv().ok()
    }

    /// Takes back the buffer of a message that has been delivered everywhere or given up, which
    /// makes room for another message.
    pub(super) fn give_back(&self, buffer: Buffer) {
        locked(&self.send_queue.spent).put(buffer);
        self.send_queue.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends messages of these sizes at the same time, and waits until they have been delivered
    /// everywhere. Returns the number of buffers that were allocated for them; a new buffer is all
    /// zero.
    fn send(send_queue: &LargeSendQueue, reader: &LargeSendQueueReader, sizes: &[usize]) -> usize {
        let mut buffers: Vec<_> =
            sizes.iter().map(|bytes| send_queue.buffer(*bytes).expect("memory")).collect();
        let made = buffers.iter_mut().map(|buffer| std::mem::replace(&mut buffer[0], 1) == 0);
        let made = made.filter(|is_made| *is_made).count();
        for (buffer, bytes) in buffers.into_iter().zip(sizes) {
            let entered = send_queue.enter().expect("there is room");
            entered
                .hand_over(QueuedBytes { ordinal: 0, buffer, bytes: *bytes })
                .expect("it is taken");
        }
        std::iter::from_fn(|| reader.take()).for_each(|queued| reader.give_back(queued.buffer));
        made
    }

    #[test]
    fn send_buffers_are_reused_for_similar_sizes() {
        const SMALL: usize = 10_000;
        const LARGE: usize = 1 << 20;
        let rounds: [(&[usize], usize); 4] = [
            (&[SMALL, SMALL], 2),
            // The small buffers do not prevent this allocation.
            (&[LARGE, LARGE], 2),
            // Large buffers are not used for small messages.
            (&[SMALL, LARGE], 1),
            (&[LARGE, SMALL], 0),
        ];
        let (send_queue, reader) =
            LargeSendQueue::new(LARGE, 2, AnyBlockStore::Tcp(Default::default()));
        for (sizes, expected) in rounds {
            let made: usize = (0..10).map(|_| send(&send_queue, &reader, sizes)).sum();
            assert_eq!(made, expected, "{sizes:?}");
        }
    }
}
