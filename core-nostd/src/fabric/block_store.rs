//! What a host needs of a fabric for blocks: the memory that they go from and into.
//!
//! Requirement: FAB-4.

use core::ops::Deref;

use super::blocks::Blocks;
use crate::memory::{BlockMemory, BlockPages};

/// What a piece of block memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BlockUse {
    /// Blocks are sent from it and received into it.
    Both,
    /// Blocks are only sent from it: over RDMA no peer may write to it, and a receive into it is
    /// `OutOfRange`. On other fabrics no peer ever may.
    Send,
}

/// Makes memory for the blocks of one member, for all its views. Any thread may have one.
pub trait BlockStore: Clone + Send + Sync + 'static {
    /// A pointer to what keeps the bytes; the fabric has it too while a block goes from them or
    /// into them.
    type Pages: Deref<Target: BlockPages> + Send + 'static;

    /// Why there is no memory.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Memory of so many bytes, all zero, under a region that no other memory of this member has.
    /// The fabric knows it from then on. May take a while if there are many; waits for nobody.
    ///
    /// # Errors
    /// Too many regions, or too little memory.
    fn memory(
        &self,
        bytes: usize,
        purpose: BlockUse,
    ) -> Result<BlockMemory<Self::Pages>, Self::Error>;

    /// Whether a block may land in its memory after the channel that it was to come by is closed:
    /// such memory is better dropped than used again at once.
    fn fills_late(&self) -> bool {
        false
    }
}

/// A fabric that makes the memory of its blocks.
///
/// [`Blocks::post_receive`] and [`Blocks::send`] take ranges of memory that its store made and that
/// is still there; anything else is `OutOfRange`.
pub trait HostBlocks: Blocks {
    /// What makes the memory.
    type Store: BlockStore;

    /// What makes memory for this fabric's blocks.
    fn block_store(&self) -> Self::Store;
}

impl<F: HostBlocks + ?Sized> HostBlocks for &mut F {
    type Store = F::Store;

    fn block_store(&self) -> F::Store {
        (**self).block_store()
    }
}
