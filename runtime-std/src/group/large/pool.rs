//! Unused buffers for large messages, kept for reuse.

use tramontane_core::fabric::BlockStore as _;

use crate::block_transfer::buffer::Buffer;
use crate::fabric::{AnyBlockStore, BlockMemoryError};

/// The maximum factor by which a reused buffer may exceed its message. Without this limit, large
/// buffers would be used up by small messages.
const WASTE_MAX: usize = 4;

/// Unused buffers.
#[derive(Debug)]
pub(super) struct Pool {
    store: AnyBlockStore,
    /// The free buffers, in the order in which they were returned.
    free: Vec<Buffer>,
    free_bytes: usize,
    /// The limits on the buffers kept.
    buffers_max: usize,
    bytes_max: usize,
}

impl Pool {
    pub(super) fn new(store: AnyBlockStore, buffers_max: usize, bytes_max: usize) -> Self {
        Self { store, free: Vec::new(), free_bytes: 0, buffers_max, bytes_max }
    }

    /// Returns a buffer of at least `bytes` bytes, with arbitrary content.
    pub(super) fn take(&mut self, bytes: usize) -> Result<Buffer, BlockMemoryError> {
        self.find(bytes).map_or_else(|| Buffer::new(&self.store, bytes), Ok)
    }

    /// Returns a free buffer of at least `bytes` bytes, if there is one.
    pub(super) fn find(&mut self, bytes: usize) -> Option<Buffer> {
        let fits = |buffer: &Buffer| buffer.len() >= bytes && buffer.len() / WASTE_MAX <= bytes;
        let buffer = self.free.remove(self.free.iter().position(fits)?);
        self.free_bytes -= buffer.len();
        Some(buffer)
    }

    /// Takes back a buffer that may still have posted receives. A device cannot withdraw them: over
    /// RDMA, the buffer is freed once no peer can write to it any longer.
    pub(super) fn put_unfilled(&mut self, buffer: Buffer) {
        if !self.store.fills_late() {
            self.put(buffer);
        }
    }

    /// Takes back a buffer. Above the limit, the buffer that has been unused for longest is freed,
    /// because the next messages will probably resemble the last ones.
    pub(super) fn put(&mut self, buffer: Buffer) {
        self.free_bytes += buffer.len();
        self.free.push(buffer);
        while self.free.len() > self.buffers_max || self.free_bytes > self.bytes_max {
            let oldest = self.free.remove(0);
            self.free_bytes -= oldest.len();
        }
    }
}
