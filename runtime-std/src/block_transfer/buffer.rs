//! Memory that messages go from and come into.

use std::ops::{Deref, DerefMut};

use tramontane_core::fabric::BlockStore as _;
use tramontane_core::fabric::{Area, BlockUse};

use crate::fabric::{BlockMemory, BlockMemoryError, BlockStore};

/// Bytes that a fabric can take blocks from and put them into. Whoever holds it has it alone: while
/// a message goes from it or into it, the runtime holds it.
#[derive(Debug)]
pub struct Buffer {
    memory: BlockMemory,
}

impl Buffer {
    /// A buffer of so many bytes, all zero; at least one.
    ///
    /// # Errors
    /// [`BlockMemoryError`].
    pub fn new(store: &BlockStore, bytes: usize) -> Result<Self, BlockMemoryError> {
        Ok(Self { memory: store.memory(bytes.max(1), BlockUse::Both)? })
    }

    /// A buffer that messages are only sent from: over RDMA no peer may write to it, and one that
    /// is given for a message to come ends its group.
    ///
    /// # Errors
    /// [`BlockMemoryError`].
    pub fn to_send(store: &BlockStore, bytes: usize) -> Result<Self, BlockMemoryError> {
        Ok(Self { memory: store.memory(bytes.max(1), BlockUse::Send)? })
    }

    /// Where it begins.
    pub(crate) fn area(&self) -> Area {
        self.memory.area(0)
    }
}

/// Copies `length` bytes of a block that came into `staging` to their place in the message, as far
/// as both have them.
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
        // SAFETY: who writes to it here has it exclusively, and receives are posted into it only
        // while the runtime holds it, whose polling thread reads it (the first block, once it has
        // come) between calls of the fabric.
        unsafe { self.memory.slice(0, self.memory.bytes()) }.unwrap_or(&[])
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above. Blocks that are being sent from it are only read, by peers; the
        // runtime, which holds it then, does not write to it.
        unsafe { self.memory.slice_mut(0, self.memory.bytes()) }.unwrap_or(&mut [])
    }
}
