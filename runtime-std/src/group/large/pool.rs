//! Buffers that large messages come into, and that go through no hands in between: made once, and used again.

use super::options::POOL_MAX;
use crate::blocks::Buffer;
use crate::joined::{BlockMemoryError, BlockStore};

/// A buffer is used for smaller messages too, but not for much smaller ones: they would hold what others need.
const WASTE_MAX: usize = 4;

/// Buffers that nobody uses now.
#[derive(Debug)]
pub(super) struct Pool {
    store: BlockStore,
    free: Vec<Buffer>,
    free_bytes: usize,
    /// What is kept at most.
    bytes_max: usize,
}

impl Pool {
    pub(super) fn new(store: BlockStore, bytes_max: usize) -> Self {
        Self { store, free: Vec::new(), free_bytes: 0, bytes_max }
    }

    /// A buffer of at least so many bytes, holding whatever was in it before.
    pub(super) fn take(&mut self, bytes: usize) -> Result<Buffer, BlockMemoryError> {
        let fits = |buffer: &Buffer| buffer.len() >= bytes && buffer.len() / WASTE_MAX <= bytes;
        let Some(index) = self.free.iter().position(fits) else { return Buffer::new(&self.store, bytes) };
        let buffer = self.free.swap_remove(index);
        self.free_bytes -= buffer.len();
        Ok(buffer)
    }

    /// Takes a buffer back into which blocks may still be posted to come. A device cannot be told otherwise: over RDMA it
    /// goes once no peer can write to it any more.
    pub(super) fn put_unfilled(&mut self, buffer: Buffer) {
        if !self.store.fills_late() {
            self.put(buffer);
        }
    }

    /// Takes a buffer back; what is above the bound goes.
    pub(super) fn put(&mut self, buffer: Buffer) {
        let has_room = self.free_bytes.saturating_add(buffer.len()) <= self.bytes_max;
        if has_room && self.free.len() < POOL_MAX {
            self.free_bytes += buffer.len();
            self.free.push(buffer);
        }
    }
}
