//! Blocks over whichever fabric it is, and the memory that they go from and into.

use std::sync::Arc;

use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Channel, ErrorKind, Region, Token, Way,
};
use tramontane_core::ids::ViewId;

use super::JoinedFabric;
use crate::shared_memory::{self, Residence};
use crate::tcp;

/// Why there is no memory for blocks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockMemoryError {
    /// Shared memory has none.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// There is none for TCP.
    #[error(transparent)]
    Tcp(#[from] tcp::NoBlockMemory),
    /// There is none for RDMA.
    #[cfg(feature = "verbs")]
    #[error(transparent)]
    Verbs(#[from] tramontane_verbs::NoBlockMemory),
}

/// Makes memory for blocks; any thread may have one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BlockStore {
    /// In files that peers map.
    SharedMemory(Arc<Residence>),
    /// In this process alone.
    Tcp(tcp::BlockStore),
    /// In this process, registered with the device.
    #[cfg(feature = "verbs")]
    Verbs(tramontane_verbs::BlockStore),
}

/// Memory that blocks go from and into; it goes when this is dropped and no block of it is under way.
#[derive(Debug)]
#[non_exhaustive]
pub enum BlockMemory {
    /// Which peers map.
    SharedMemory(shared_memory::BlockMemory),
    /// Of this process alone.
    Tcp(tcp::BlockMemory),
    /// Which a device reads, and peers may write to.
    #[cfg(feature = "verbs")]
    Verbs(tramontane_verbs::BlockMemory),
}

/// Hands a call to whichever memory it is.
macro_rules! each {
    ($self:ident, $memory:ident => $call:expr) => {
        match $self {
            BlockMemory::SharedMemory($memory) => $call,
            BlockMemory::Tcp($memory) => $call,
            #[cfg(feature = "verbs")]
            BlockMemory::Verbs($memory) => $call,
        }
    };
}

impl BlockStore {
    /// Memory of so many bytes, all zero.
    ///
    /// # Errors
    /// [`BlockMemoryError`].
    pub fn memory(&self, bytes: usize) -> Result<BlockMemory, BlockMemoryError> {
        match self {
            Self::SharedMemory(residence) => {
                Ok(BlockMemory::SharedMemory(residence.block_memory(bytes)?))
            }
            Self::Tcp(store) => Ok(BlockMemory::Tcp(store.memory(bytes)?)),
            #[cfg(feature = "verbs")]
            Self::Verbs(store) => Ok(BlockMemory::Verbs(store.memory(bytes)?)),
        }
    }

    /// Memory of so many bytes, all zero, that blocks are only sent from. Over RDMA no peer may write to it; elsewhere
    /// peers never may.
    ///
    /// # Errors
    /// [`BlockMemoryError`].
    pub fn memory_to_send(&self, bytes: usize) -> Result<BlockMemory, BlockMemoryError> {
        match self {
            #[cfg(feature = "verbs")]
            Self::Verbs(store) => Ok(BlockMemory::Verbs(store.memory_to_send(bytes)?)),
            _ => self.memory(bytes),
        }
    }
}

impl BlockStore {
    /// Whether a block may land in its memory after the channel that it was to come by is closed.
    pub(crate) const fn fills_late(&self) -> bool {
        match self {
            Self::SharedMemory(_) | Self::Tcp(_) => false,
            #[cfg(feature = "verbs")]
            Self::Verbs(_) => true,
        }
    }
}

impl BlockMemory {
    /// The region by which the fabric knows it.
    #[must_use]
    pub fn region(&self) -> Region {
        each!(self, memory => memory.region())
    }

    /// How many bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        each!(self, memory => memory.bytes())
    }

    /// All of it, as it is.
    ///
    /// # Safety
    /// While the slice is there nothing is written to the memory, and no receive is posted into it.
    pub(crate) unsafe fn slice(&self) -> &[u8] {
        let bytes = self.bytes();
        // SAFETY: by the caller's promise.
        let slice = unsafe {
            match self {
                Self::SharedMemory(memory) => memory.slice(0, bytes).ok(),
                Self::Tcp(memory) => memory.slice(0, bytes).ok(),
                #[cfg(feature = "verbs")]
                Self::Verbs(memory) => Some(memory.slice()),
            }
        };
        slice.unwrap_or(&[])
    }

    /// All of it, to be filled in place.
    ///
    /// # Safety
    /// While the slice is there nobody else reads or writes the memory, and no block goes from it or into it.
    pub(crate) unsafe fn slice_mut(&mut self) -> &mut [u8] {
        let bytes = self.bytes();
        // SAFETY: by the caller's promise.
        let slice = unsafe {
            match self {
                Self::SharedMemory(memory) => memory.slice_mut(0, bytes).ok(),
                Self::Tcp(memory) => memory.slice_mut(0, bytes).ok(),
                #[cfg(feature = "verbs")]
                Self::Verbs(memory) => Some(memory.slice_mut()),
            }
        };
        slice.unwrap_or(&mut [])
    }
}

impl JoinedFabric {
    /// What makes memory for this fabric's blocks.
    #[must_use]
    pub fn block_store(&self) -> BlockStore {
        match self {
            Self::SharedMemory(fabric) => BlockStore::SharedMemory(Arc::clone(fabric.residence())),
            Self::Tcp(fabric) => BlockStore::Tcp(fabric.block_store().clone()),
            #[cfg(feature = "verbs")]
            Self::Verbs(fabric) => BlockStore::Verbs(fabric.block_store().clone()),
            #[cfg(feature = "verbs")]
            Self::RdmaViews(fabric) => BlockStore::Verbs(fabric.block_store().clone()),
        }
    }
}

/// A fabric whose blocks go from and into [`BlockMemory`].
pub trait BlockHost: Blocks {
    /// Makes memory known, before blocks go from it or into it. Of another fabric's nothing is taken.
    fn lend_blocks(&mut self, memory: &BlockMemory);
}

impl BlockHost for JoinedFabric {
    fn lend_blocks(&mut self, memory: &BlockMemory) {
        let lent = match (self, memory) {
            (Self::SharedMemory(fabric), BlockMemory::SharedMemory(memory)) => {
                fabric.lend_blocks(memory)
            }
            // Its fabric looks it up where it was made.
            (Self::Tcp(_), BlockMemory::Tcp(_)) => Ok(()),
            #[cfg(feature = "verbs")]
            (Self::Verbs(fabric), BlockMemory::Verbs(memory)) => fabric.lend_blocks(memory),
            #[cfg(feature = "verbs")]
            (Self::RdmaViews(fabric), BlockMemory::Verbs(memory)) => fabric.lend_blocks(memory),
            _ => Err(ErrorKind::Other),
        };
        if let Err(error) = lent {
            // Blocks of it are refused then, which ends their group.
            tracing::warn!(%error, "memory of another fabric");
        }
    }
}

/// Hands a call to whichever fabric it is.
macro_rules! each_fabric {
    ($self:ident, $fabric:ident => $call:expr) => {
        match $self {
            JoinedFabric::SharedMemory($fabric) => $call,
            JoinedFabric::Tcp($fabric) => $call,
            #[cfg(feature = "verbs")]
            JoinedFabric::Verbs($fabric) => $call,
            #[cfg(feature = "verbs")]
            JoinedFabric::RdmaViews($fabric) => $call,
        }
    };
}

impl Blocks for JoinedFabric {
    fn block_limits(&self) -> BlockLimits {
        each_fabric!(self, fabric => fabric.block_limits())
    }

    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        each_fabric!(self, fabric => fabric.post_receive(from, into, length, token))
    }

    fn send(
        &mut self,
        to: Way,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), ErrorKind> {
        each_fabric!(self, fabric => fabric.send(to, source, length, immediate, token))
    }

    fn close(&mut self, view: ViewId, channel: Channel) {
        each_fabric!(self, fabric => fabric.close(view, channel));
    }

    fn poll_block(&mut self) -> Option<BlockEvent> {
        each_fabric!(self, fabric => fabric.poll_block())
    }
}
