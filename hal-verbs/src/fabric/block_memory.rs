//! Block memory: pages of the process that are registered with the device as long as they exist.
//!
//! # Invariants
//! - Pages exist and stay registered as long as a handle exists or a block from or into them is in
//!   flight.
//! - A region number belongs to one memory at a time; it is free again when that memory has been
//!   released.
//! - Areas survive a reopened device: their pages are registered again.
//! - Peers may write only to memory that was created for receiving.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tramontane_core::fabric::{self, Area, BlockUse, REGIONS_MAX, Region, Regions, TooManyRegions};
use tramontane_core::memory::BlockPages as _;

use crate::adapter::{Access, MemoryRegion, PageSize, Pages, ProtectionDomain};
use crate::cgroup;
use crate::locked::{self, Limit};

/// The reason that block memory cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoBlockMemory {
    /// All region numbers are in use.
    #[error(transparent)]
    TooMany(#[from] TooManyRegions),
    /// The memory cannot be locked.
    #[error(
        "cannot register {needed} B for blocks: this process may lock {}; raise the limit with \
         `ulimit -l unlimited`, or use smaller or fewer buffers",
        Limit(*limit)
    )]
    LockedMemory {
        /// Size of the memory in bytes.
        needed: usize,
        /// Number of bytes that the process may lock; `None` if there is no limit.
        limit: Option<u64>,
    },
    /// The system or the device refused an operation.
    #[error("cannot register {needed} B for blocks: {source}; use smaller or fewer buffers")]
    Refused {
        /// Size of the memory in bytes.
        needed: usize,
        /// The system's error.
        source: io::Error,
    },
}

impl NoBlockMemory {
    fn from_registration(needed: usize, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::OutOfMemory {
            return Self::LockedMemory { needed, limit: locked::limit() };
        }
        let source = match cgroup::refuses(&source) {
            true => io::Error::other("the RDMA cgroup of this process allows no more objects"),
            false => source,
        };
        Self::Refused { needed, source }
    }
}

/// Memory from which and into which blocks are sent.
///
/// A receive that the device knows of cannot be withdrawn. After its channel is closed, an arriving
/// block may still land in the memory until the message that ends the channel has arrived. Drop
/// such memory instead of reusing it immediately.
pub type BlockMemory = tramontane_core::memory::BlockMemory<Arc<MemoryRegion>>;

/// Allocates block memory for the fabrics of all views at one site. Any thread may hold it.
/// Allocating and dropping memory are kernel calls, which take longer for larger memory.
#[derive(Clone, Debug)]
pub struct BlockStore(Arc<Mutex<Registered>>);

/// The registered memory and its protection domain.
#[derive(Debug)]
struct Registered {
    domain: ProtectionDomain,
    size: PageSize,
    /// Number of protection domains so far.
    generation: u64,
    /// The registrations in the handles.
    regions: Regions<Weak<MemoryRegion>>,
    /// Registrations of the same pages in the current domain, for handles whose registrations are
    /// in an earlier domain. Registrations of dropped memory are removed when memory is next
    /// allocated.
    again: BTreeMap<u16, Arc<MemoryRegion>>,
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
    pub(crate) fn new(domain: ProtectionDomain, size: PageSize) -> Self {
        let (regions, again) = (Regions::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(Registered { domain, size, generation: 0, regions, again })))
    }

    fn registered(&self) -> MutexGuard<'_, Registered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the domain in which the memory is registered.
    pub(crate) fn domain(&self) -> ProtectionDomain {
        self.registered().domain.clone()
    }

    /// Registers all memory in another domain, after the device of the current domain has failed.
    pub(crate) fn move_to(&self, domain: ProtectionDomain) -> io::Result<()> {
        let mut registered = self.registered();
        let mut again = BTreeMap::new();
        for number in (1..).take(REGIONS_MAX) {
            let memory = registered.regions.get(Region(number)).and_then(Weak::upgrade);
            if let Some(memory) = memory {
                let (pages, access) = (memory.pages(), memory.access());
                let memory = MemoryRegion::new(&domain, pages, memory.bytes(), access)?;
                again.insert(number, Arc::new(memory));
            }
        }
        (registered.domain, registered.again) = (domain, again);
        registered.generation += 1;
        Ok(())
    }

    /// Returns an area of existing memory.
    pub(super) fn range(&self, area: Area, length: usize) -> Option<BlockRange> {
        let registered = self.registered();
        let memory = registered.regions.get(area.region)?.upgrade()?;
        memory.at(area.offset, length).ok()?;
        let length = u32::try_from(length).ok()?;
        let memory = registered.again.get(&area.region.0).map(Arc::clone).unwrap_or(memory);
        Some(BlockRange { memory, offset: area.offset, length })
    }

    fn register(&self, bytes: usize, access: Access) -> Result<BlockMemory, NoBlockMemory> {
        let failed = |source| NoBlockMemory::from_registration(bytes, source);
        let size = self.registered().size;
        let pages = Pages::sized(bytes, size).map(Arc::new).map_err(failed)?;
        loop {
            let (domain, generation) = {
                let registered = self.registered();
                (registered.domain.clone(), registered.generation)
            };
            // The lock is not held meanwhile, because registration touches every page.
            let made = MemoryRegion::new(&domain, &pages, pages.bytes(), access).map(Arc::new);
            let mut registered = self.registered();
            if registered.generation != generation {
                // The device has been reopened in the meantime.
                continue;
            }
            let memory = made.map_err(failed)?;
            let region = registered.take(&memory)?;
            return Ok(BlockMemory::new(region, memory));
        }
    }
}

impl Registered {
    /// Assigns a number to new memory.
    fn take(&mut self, memory: &Arc<MemoryRegion>) -> Result<Region, TooManyRegions> {
        let is_gone = |memory: &Weak<MemoryRegion>| memory.strong_count() == 0;
        let region = self.regions.take(Arc::downgrade(memory), is_gone)?;
        self.again.remove(&region.0);
        let regions = &self.regions;
        self.again.retain(|number, _| {
            regions.get(Region(*number)).is_some_and(|memory| !is_gone(memory))
        });
        Ok(region)
    }
}

/// A range of existing block memory.
#[derive(Debug)]
pub(super) struct BlockRange {
    pub(super) memory: Arc<MemoryRegion>,
    pub(super) offset: usize,
    pub(super) length: u32,
}
