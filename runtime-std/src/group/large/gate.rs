//! From application threads to the engine: bytes of large messages there, and buffers back.
//!
//! # Invariant
//! What is handed over stands in the order of the slots that describe it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::blocks::Buffer;
use crate::joined::{BlockMemoryError, BlockStore};

/// The bytes of a large message whose slot was taken.
#[derive(Debug)]
pub(super) struct Handed {
    /// As [`Receipt`](super::super::Receipt)s count.
    pub(super) ordinal: u64,
    pub(super) buffer: Buffer,
    pub(super) bytes: usize,
}

/// The senders' side of a subgroup that takes large messages.
#[derive(Debug)]
pub(in crate::group) struct LargeGate {
    /// The longest message, in bytes.
    pub(super) bytes_max: usize,
    /// Messages that may be under way at a time.
    window: usize,
    store: BlockStore,
    /// Locked while a slot is taken, so that both orders are one.
    way: Mutex<Sender<Handed>>,
    under_way: AtomicUsize,
    /// Buffers to be used again, as many as may be under way at most.
    spent: Mutex<Vec<Buffer>>,
}

/// The engine's end.
#[derive(Debug)]
pub(in crate::group) struct Handing {
    gate: Arc<LargeGate>,
    queue: Receiver<Handed>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LargeGate {
    /// Both ends.
    pub(in crate::group) fn new(bytes_max: usize, window: usize, store: BlockStore) -> (Arc<Self>, Handing) {
        let (sender, queue) = channel();
        let gate = Arc::new(Self {
            bytes_max,
            window,
            store,
            way: Mutex::new(sender),
            under_way: AtomicUsize::new(0),
            spent: Mutex::default(),
        });
        (Arc::clone(&gate), Handing { gate, queue })
    }

    pub(super) fn buffer(&self, bytes: usize) -> Result<Buffer, BlockMemoryError> {
        let mut spent = locked(&self.spent);
        match spent.iter().position(|buffer| buffer.len() >= bytes) {
            Some(index) => Ok(spent.swap_remove(index)),
            None => Buffer::new(&self.store, bytes),
        }
    }

    /// The way for one message, if there is room. Whoever has it, takes a slot and hands the bytes over, before anybody
    /// else does.
    pub(super) fn enter(&self) -> Option<Entered<'_>> {
        let way = locked(&self.way);
        (self.under_way.load(Ordering::Relaxed) < self.window).then_some(Entered { gate: self, way })
    }
}

/// The turn of one message.
pub(super) struct Entered<'g> {
    gate: &'g LargeGate,
    way: MutexGuard<'g, Sender<Handed>>,
}

impl Entered<'_> {
    /// Hands bytes over. They come back if the engine is gone.
    pub(super) fn hand_over(self, handed: Handed) -> Result<(), Handed> {
        self.gate.under_way.fetch_add(1, Ordering::Relaxed);
        self.way.send(handed).map_err(|refused| refused.0)
    }
}

impl Handing {
    pub(super) fn take(&self) -> Option<Handed> {
        self.queue.try_recv().ok()
    }

    /// A message is delivered everywhere, or was given up: there is room for another.
    pub(super) fn give_back(&self, buffer: Buffer) {
        let mut spent = locked(&self.gate.spent);
        if spent.len() < self.gate.window {
            spent.push(buffer);
        }
        self.gate.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
