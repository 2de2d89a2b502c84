//! Buffers of large messages that nobody uses now: made once, and used again.

use tramontane_core::fabric::BlockStore as _;

use crate::block_transfer::buffer::Buffer;
use crate::fabric::{BlockMemoryError, BlockStore};

/// A buffer is used for smaller messages too, but not for much smaller ones: they would hold what
/// others need.
const WASTE_MAX: usize = 4;

/// Buffers that nobody uses now.
#[derive(Debug)]
pub(super) struct Pool {
    store: BlockStore,
    /// What came back first is first.
    free: Vec<Buffer>,
    free_bytes: usize,
    /// What is kept at most.
    buffers_max: usize,
    bytes_max: usize,
}

impl Pool {
    pub(super) fn new(store: BlockStore, buffers_max: usize, bytes_max: usize) -> Self {
        Self { store, free: Vec::new(), free_bytes: 0, buffers_max, bytes_max }
    }

    /// A buffer of at least so many bytes, holding whatever was in it before.
    pub(super) fn take(&mut self, bytes: usize) -> Result<Buffer, BlockMemoryError> {
        self.find(bytes).map_or_else(|| Buffer::new(&self.store, bytes), Ok)
    }

    /// The same, if there is one.
    pub(super) fn find(&mut self, bytes: usize) -> Option<Buffer> {
        let fits = |buffer: &Buffer| buffer.len() >= bytes && buffer.len() / WASTE_MAX <= bytes;
        let buffer = self.free.remove(self.free.iter().position(fits)?);
        self.free_bytes -= buffer.len();
        Some(buffer)
    }

    /// Takes a buffer back into which blocks may still be posted to come. A device cannot be told
    /// otherwise: over RDMA it goes once no peer can write to it any more.
    pub(super) fn put_unfilled(&mut self, buffer: Buffer) {
        if !self.store.fills_late() {
            self.put(buffer);
        }
    }

    /// Takes a buffer back. Above the bound the one goes that nobody has asked for longest: what is
    /// sent now is like what was sent last.
    pub(super) fn put(&mut self, buffer: Buffer) {
        self.free_bytes += buffer.len();
        self.free.push(buffer);
        while self.free.len() > self.buffers_max || self.free_bytes > self.bytes_max {
            let oldest = self.free.remove(0);
            self.free_bytes -= oldest.len();
        }
    }
}
