//! Blocks over any of the fabrics, and the memory from which they are sent and into which they are
//! received.

use std::sync::Arc;

use tramontane_core::fabric::{
    self, Area, BlockEvent, BlockLimits, BlockUse, Blocks, Channel, ErrorKind, HostBlocks, Token,
    Way,
};
use tramontane_core::ids::ViewId;
use tramontane_core::memory::BlockPages;

use super::AnyFabric;
use crate::shared_memory;
use crate::tcp;

/// The reason why there is no memory for blocks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockMemoryError {
    /// Shared memory cannot be allocated.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// Memory for TCP cannot be allocated.
    #[error(transparent)]
    Tcp(#[from] tcp::NoBlockMemory),
    /// Memory for RDMA cannot be allocated.
    #[error(transparent)]
    Verbs(#[from] tramontane_verbs::NoBlockMemory),
}

/// Allocates memory for blocks. Any thread may hold a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyBlockStore {
    /// Memory in files that peers map.
    SharedMemory(shared_memory::SharedBlockStore),
    /// Memory of this process only.
    Tcp(tcp::BlockStore),
    /// Memory of this process, registered with the device.
    Verbs(tramontane_verbs::BlockStore),
}

/// A pointer to the bytes of a block memory of any fabric.
pub type AnyPages = Arc<dyn BlockPages + Send + Sync>;

/// Memory from which blocks are sent and into which they are received. It is freed once this handle
/// has been dropped and none of its blocks is in flight.
pub type AnyBlockMemory = tramontane_core::memory::BlockMemory<AnyPages>;

impl fabric::BlockStore for AnyBlockStore {
    type Pages = AnyPages;
    type Error = BlockMemoryError;

    fn memory(&self, bytes: usize, purpose: BlockUse) -> Result<AnyBlockMemory, BlockMemoryError> {
        Ok(match self {
            Self::SharedMemory(store) => store.memory(bytes, purpose)?.map(|pages| pages as _),
            Self::Tcp(store) => store.memory(bytes, purpose)?.map(|pages| pages as _),
            Self::Verbs(store) => store.memory(bytes, purpose)?.map(|pages| pages as _),
        })
    }

    fn fills_late(&self) -> bool {
        match self {
            Self::SharedMemory(store) => store.fills_late(),
            Self::Tcp(store) => store.fills_late(),
            Self::Verbs(store) => store.fills_late(),
        }
    }
}

impl HostBlocks for AnyFabric {
    type Store = AnyBlockStore;

    fn block_store(&self) -> AnyBlockStore {
        match self {
            Self::SharedMemory(fabric) => AnyBlockStore::SharedMemory(fabric.block_store()),
            Self::Tcp(fabric) => AnyBlockStore::Tcp(fabric.block_store()),
            Self::Verbs(fabric) => AnyBlockStore::Verbs(fabric.block_store()),
        }
    }
}

impl Blocks for AnyFabric {
    fn block_limits(&self) -> BlockLimits {
        each!(self, fabric => fabric.block_limits())
    }

    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        each!(self, fabric => fabric.post_receive(from, into, length, token))
    }

    fn send(
        &mut self,
        to: Way,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), ErrorKind> {
        each!(self, fabric => fabric.send(to, source, length, immediate, token))
    }

    fn close(&mut self, view: ViewId, channel: Channel) {
        each!(self, fabric => fabric.close(view, channel));
    }

    fn poll_block(&mut self) -> Option<BlockEvent> {
        each!(self, fabric => fabric.poll_block())
    }
}
