//! Block memory: pages of the process, registered with the device as long as they are there.
//!
//! # Invariants
//! - Pages stay, and stay registered, as long as anybody has the handle, or a block from them or
//!   into them is under way.
//! - A region's number belongs to one memory at a time; it is free again when the memory is gone.
//! - Peers may write only to memory that is made to receive.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tramontane_core::fabric::{self, Area, BlockUse, Regions, TooManyRegions};
use tramontane_core::memory::BlockPages as _;

use crate::ffi::{Access, MemoryRegion, Pages, ProtectionDomain};
use crate::locked::{self, Limit};

/// Why there is no block memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoBlockMemory {
    /// There are as many regions as there can be.
    #[error(transparent)]
    TooMany(#[from] TooManyRegions),
    /// Memory may not be held in place.
    #[error(
        "cannot register {needed} B for blocks: this process may lock {}; raise it with `ulimit -l unlimited`, or take \
         smaller buffers or fewer",
        Limit(*limit)
    )]
    LockedMemory {
        /// Bytes of the memory.
        needed: usize,
        /// Bytes that the process may lock; none if there is no limit.
        limit: Option<u64>,
    },
    /// The system or the device refused.
    #[error("cannot register {needed} B for blocks: {source}; take smaller buffers, or fewer")]
    Refused {
        /// Bytes of the memory.
        needed: usize,
        /// What was said.
        source: io::Error,
    },
}

impl NoBlockMemory {
    fn from_registration(needed: usize, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::OutOfMemory {
            return Self::LockedMemory { needed, limit: locked::limit() };
        }
        Self::Refused { needed, source }
    }
}

/// Memory that blocks go from and into.
///
/// A device that was told of a receive cannot be told otherwise: once its channel is closed, a
/// block that is just coming may still land there, for as long as the message takes that ends the
/// channel. Drop such memory, rather than use it again at once.
pub type BlockMemory = tramontane_core::memory::BlockMemory<Arc<MemoryRegion>>;

/// Makes block memory for the fabrics of all views at one site; any thread may have one. Making and
/// dropping memory are calls to the kernel, which take longer the larger it is.
#[derive(Clone, Debug)]
pub struct BlockStore {
    domain: Arc<ProtectionDomain>,
    regions: Arc<Mutex<Regions<Weak<MemoryRegion>>>>,
}

impl fabric::BlockStore for BlockStore {
    type Pages = Arc<MemoryRegion>;
    type Error = NoBlockMemory;

    fn memory(&self, bytes: usize, purpose: BlockUse) -> Result<BlockMemory, NoBlockMemory> {
        self.register(
            bytes,
            match purpose {
                BlockUse::Both => Access::LOCAL_WRITE | Access::REMOTE_WRITE,
                BlockUse::Send => Access::empty(),
            },
        )
    }

    fn fills_late(&self) -> bool {
        true
    }
}

impl BlockStore {
    pub(crate) fn new(domain: Arc<ProtectionDomain>) -> Self {
        Self { domain, regions: Arc::default() }
    }

    /// Where its memory is registered.
    pub(crate) const fn domain(&self) -> &Arc<ProtectionDomain> {
        &self.domain
    }

    /// An area of a memory that is there.
    pub(super) fn range(&self, area: Area, length: usize) -> Option<BlockRange> {
        let regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = regions.get(area.region)?.upgrade()?;
        memory.at(area.offset, length).ok()?;
        let length = u32::try_from(length).ok()?;
        Some(BlockRange { memory, offset: area.offset, length })
    }

    fn register(&self, bytes: usize, access: Access) -> Result<BlockMemory, NoBlockMemory> {
        // Before the lock: it touches every page.
        let memory = Pages::new(bytes).map(Arc::new).and_then(|pages| {
            let bytes = pages.bytes();
            MemoryRegion::new(&self.domain, &pages, bytes, access).map(Arc::new)
        });
        let memory = memory.map_err(|source| NoBlockMemory::from_registration(bytes, source))?;
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let is_gone = |memory: &Weak<MemoryRegion>| memory.strong_count() == 0;
        let region = regions.take(Arc::downgrade(&memory), is_gone)?;
        Ok(BlockMemory::new(region, memory))
    }
}

/// A range of block memory that is there.
#[derive(Debug)]
pub(super) struct BlockRange {
    pub(super) memory: Arc<MemoryRegion>,
    pub(super) offset: usize,
    pub(super) length: u32,
}
