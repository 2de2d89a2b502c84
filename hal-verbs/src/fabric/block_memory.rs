//! Block memory: pages of the process, registered with the device as long as they are there.
//!
//! # Invariants
//! - Pages stay, and stay registered, as long as anybody has the handle, or a block from them or into them is under way.
//! - A region's number belongs to one memory at a time; it is free again when the memory is gone.
//! - Peers may write only to memory that is made to receive.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tramontane_core::fabric::{Area, Region};

use crate::ffi::{Access, MemoryRegion, Pages, ProtectionDomain};
use crate::locked::{self, Limit};

/// Block memories that a fabric may have at a time.
const REGIONS_MAX: u16 = 1024;

/// Why there is no block memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoBlockMemory {
    /// There are as many regions as there can be.
    #[error(
        "this fabric has {REGIONS_MAX} block memories already; drop one before another is made"
    )]
    TooMany,
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

/// Memory that blocks go from and into, at first all zero: the owner's handle. It goes when this is dropped and no block of
/// it is under way.
///
/// A device that was told of a receive cannot be told otherwise: once its channel is closed, a block that is just coming may
/// still land there, for as long as the message takes that ends the channel. Drop such memory, rather than use it again at
/// once. A fabric takes blocks from it, and puts them into it, once it was lent
/// ([`Verbs::lend_blocks`](crate::Verbs::lend_blocks)).
#[derive(Debug)]
pub struct BlockMemory {
    region: Region,
    memory: Arc<MemoryRegion>,
}

impl BlockMemory {
    /// The region by which the fabric knows it. Peers never learn it.
    #[must_use]
    pub const fn region(&self) -> Region {
        self.region
    }

    /// A place in it.
    #[must_use]
    pub const fn area(&self, offset: usize) -> Area {
        Area { region: self.region, offset }
    }

    /// How many bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// All of it, as it is.
    ///
    /// # Safety
    /// While the slice is there: nothing is written to the memory, and no receive is posted into it that may still be
    /// filled.
    #[must_use]
    pub unsafe fn slice(&self) -> &[u8] {
        // SAFETY: by the caller's promise.
        unsafe { self.memory.pages().slice() }
    }

    /// All of it, to be filled in place.
    ///
    /// # Safety
    /// While the slice is there: nobody else reads or writes the memory, no receive is posted into it that may still be
    /// filled, and no block of it is being sent.
    #[must_use]
    pub unsafe fn slice_mut(&mut self) -> &mut [u8] {
        // SAFETY: by the caller's promise.
        unsafe { self.memory.pages().slice_mut() }
    }
}

/// Makes block memory for one fabric, or for those of all views at one site; any thread may have one. Making and dropping memory are calls to the kernel, which
/// take longer the larger it is.
#[derive(Clone, Debug)]
pub struct BlockStore {
    domain: Arc<ProtectionDomain>,
    /// The first is region 1: the row is 0.
    regions: Arc<Mutex<Vec<Weak<MemoryRegion>>>>,
}

impl BlockStore {
    pub(crate) fn new(domain: Arc<ProtectionDomain>) -> Self {
        Self { domain, regions: Arc::default() }
    }

    /// Where its memory is registered.
    pub(crate) const fn domain(&self) -> &Arc<ProtectionDomain> {
        &self.domain
    }

    /// Memory of so many bytes, at least one, that blocks are sent from and received into. Peers may write to it while it
    /// is there.
    ///
    /// # Errors
    /// [`NoBlockMemory`].
    pub fn memory(&self, bytes: usize) -> Result<BlockMemory, NoBlockMemory> {
        self.register(bytes, Access::LOCAL_WRITE | Access::REMOTE_WRITE)
    }

    /// Memory of so many bytes, at least one, that blocks are only sent from: no peer may write to it, and receives
    /// into it are refused.
    ///
    /// # Errors
    /// [`NoBlockMemory`].
    pub fn memory_to_send(&self, bytes: usize) -> Result<BlockMemory, NoBlockMemory> {
        self.register(bytes, Access::empty())
    }

    fn register(&self, bytes: usize, access: Access) -> Result<BlockMemory, NoBlockMemory> {
        // Before the lock: it touches every page.
        let memory = Pages::new(bytes).map(Arc::new).and_then(|pages| {
            let bytes = pages.bytes();
            MemoryRegion::new(&self.domain, &pages, bytes, access).map(Arc::new)
        });
        let memory = memory.map_err(|source| NoBlockMemory::from_registration(bytes, source))?;
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let free = regions.iter().position(|memory| memory.strong_count() == 0);
        let place = free.unwrap_or(regions.len());
        let region =
            u16::try_from(place + 1).ok().filter(|region| *region <= REGIONS_MAX).map(Region);
        let region = region.ok_or(NoBlockMemory::TooMany)?;
        if free.is_none() {
            regions.push(Weak::new());
        }
        regions[place] = Arc::downgrade(&memory);
        Ok(BlockMemory { region, memory })
    }
}

/// A range of block memory that is there.
#[derive(Debug)]
pub(super) struct BlockRange {
    pub(super) memory: Arc<MemoryRegion>,
    pub(super) offset: usize,
    pub(super) length: u32,
}

/// Block memories that were lent to a fabric, by region.
#[derive(Clone, Debug)]
pub(crate) struct LentMemory {
    domain: Arc<ProtectionDomain>,
    regions: Vec<Weak<MemoryRegion>>,
}

impl LentMemory {
    pub(crate) fn new(store: &BlockStore) -> Self {
        let regions = (0..=REGIONS_MAX).map(|_| Weak::new()).collect();
        Self { domain: Arc::clone(&store.domain), regions }
    }

    /// False if the memory is another fabric's.
    pub(crate) fn lend(&mut self, memory: &BlockMemory) -> bool {
        let is_ours = memory.memory.is_in(&self.domain);
        if let Some(place) = self.regions.get_mut(usize::from(memory.region.0)).filter(|_| is_ours)
        {
            *place = Arc::downgrade(&memory.memory);
        }
        is_ours
    }

    /// An area of a memory that is there.
    pub(super) fn range(&self, area: Area, length: usize) -> Option<BlockRange> {
        let memory = self.regions.get(usize::from(area.region.0))?.upgrade()?;
        let end = area.offset.checked_add(length)?;
        let length = u32::try_from(length).ok().filter(|_| end <= memory.bytes())?;
        Some(BlockRange { memory, offset: area.offset, length })
    }
}
