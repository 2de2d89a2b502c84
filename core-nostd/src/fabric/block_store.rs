//! Block memory: the memory that a host's fabric sends blocks from and receives them into.
//!
//! Requirement: FAB-4.

use core::ops::Deref;

use super::blocks::Blocks;
use crate::memory::{BlockMemory, BlockPages};

/// Intended use of block memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BlockUse {
    /// Blocks are sent from the memory and received into it.
    Both,
    /// Blocks are only sent from the memory. Over RDMA no peer may write to it, and posting a
    /// receive into it fails with `OutOfRange`. On other fabrics peers never write to block memory.
    Send,
}

/// Allocates memory for the blocks of one member, for all of its views. Any thread may hold a
/// store.
pub trait BlockStore: Clone + Send + Sync + 'static {
    /// Pointer that keeps the bytes alive. The fabric holds a clone while it sends a block from
    /// these bytes or receives one into them.
    type Pages: Deref<Target: BlockPages> + Send + 'static;

    /// Reason why the memory could not be allocated.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Allocates `bytes` bytes of zeroed memory under a region that no other memory of this member
    /// has, and registers it with the fabric. The call may take a while for large sizes, but never
    /// waits for another member.
    ///
    /// # Errors
    /// Fails if there are too many regions or too little memory.
    fn memory(
        &self,
        bytes: usize,
        purpose: BlockUse,
    ) -> Result<BlockMemory<Self::Pages>, Self::Error>;

    /// Returns whether a block may still land in its memory after its channel is closed. If so,
    /// that memory should be dropped rather than reused at once.
    fn fills_late(&self) -> bool {
        false
    }
}

/// A fabric that allocates the memory for its blocks.
///
/// [`Blocks::post_receive`] and [`Blocks::send`] accept only ranges of live memory from the
/// fabric's own store; anything else is `OutOfRange`.
pub trait HostBlocks: Blocks {
    /// The store that allocates the memory.
    type Store: BlockStore;

    /// Returns the store that allocates memory for this fabric's blocks.
    fn block_store(&self) -> Self::Store;
}
