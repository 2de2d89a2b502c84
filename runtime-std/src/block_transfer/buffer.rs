//! The memory from which messages are sent, and into which they are received.

use std::ops::{Deref, DerefMut};

use tramontane_core::fabric::BlockStore as _;
use tramontane_core::fabric::{Area, BlockUse};

use crate::fabric::{AnyBlockMemory, AnyBlockStore, BlockMemoryError};

/// Memory from which a fabric can send blocks, and into which it can receive blocks. Its holder has
/// exclusive access. The runtime holds it while a message is sent from it or received into it.
#[derive(Debug)]
pub struct Buffer {
    memory: AnyBlockMemory,
}

impl Buffer {
    /// Allocates a zeroed buffer of `bytes` bytes, or of one byte if `bytes` is zero.
    ///
    /// # Errors
    /// [`BlockMemoryError`].
    pub fn new(store: &AnyBlockStore, bytes: usize) -> Result<Self, BlockMemoryError> {
        Ok(Self { memory: store.memory(bytes.max(1), BlockUse::Both)? })
    }

    /// Allocates a buffer that messages are only sent from. Over RDMA no peer may write to it;
    /// offering it for an incoming message ends the group.
    ///
    /// # Errors
    /// [`BlockMemoryError`].
    pub fn to_send(store: &AnyBlockStore, bytes: usize) -> Result<Self, BlockMemoryError> {
        Ok(Self { memory: store.memory(bytes.max(1), BlockUse::Send)? })
    }

    /// Returns the memory area of the buffer.
    pub(crate) fn area(&self) -> Area {
        self.memory.area(0)
    }
}

/// Copies `length` bytes of a block received in `staging` to the block's position in the message,
/// truncated to the smaller of the two.
pub(crate) fn place_block(
    staging: &Buffer,
    from: usize,
    message: &mut Buffer,
    to: usize,
    length: usize,
) {
    let source = staging.get(from..).and_then(|rest| rest.get(..length));
    let target = message.get_mut(to..).and_then(|rest| rest.get_mut(..length));
    if let (Some(source), Some(target)) = (source, target) {
        target.copy_from_slice(source);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the writer of this memory has exclusive access to it. Receives are posted into it
        // only while the runtime holds it, and the polling thread reads it (the first block, once
        // it has arrived) only between calls of the fabric.
        unsafe { self.memory.slice(0, self.memory.bytes()) }.unwrap_or(&[])
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above. Peers only read the blocks that are being sent from it, and the
        // runtime, which holds it meanwhile, does not write to it.
        unsafe { self.memory.slice_mut(0, self.memory.bytes()) }.unwrap_or(&mut [])
    }
}
