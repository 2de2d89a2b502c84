//! What a host needs of a fabric for regions: their memory, and views that come and go one by one.
//!
//! Requirement: FAB-3.

use super::host::HostFabric;
use super::permissions::Permissions;
use super::write::Region;
use crate::memory::RowWriter;

/// The own memory of a region, with what keeps it: mapped, registered or allocated as long as a
/// clone of this is there.
pub trait RegionMemory: Clone + Send + Sync + 'static {
    /// The bytes: cells of eight, as in a row. Peers with the right write here too.
    fn writer(&self) -> RowWriter<'_>;
}

/// A fabric that makes the memory of regions, and keeps many views open at once.
///
/// # What every implementation keeps
/// - A region is memory of the process, and not of a view: every view that is opened later shows it
///   to its peers. Each member's own plan decides how long its region is.
/// - The right to write is of one peer in one view. A view that is opened gives none.
/// - At least [`HostRegions::views_max`] views are open at once, in any order of their ids. A view
///   that ended frees its place, and its id is not used again.
pub trait HostRegions: HostFabric + Permissions {
    /// The memory of a region.
    type RegionMemory: RegionMemory;

    /// Makes the own memory of a region, all zero, before the first view is made. Takes a while if
    /// there are many bytes; waits for nobody.
    ///
    /// # Errors
    /// The region is that of rows, or was made before, or a view was made before, or there are too
    /// many regions or too little memory.
    fn region(
        &mut self,
        region: Region,
        bytes: usize,
    ) -> Result<Self::RegionMemory, Self::MemoryError>;

    /// How many views may be open at once.
    fn views_max(&self) -> usize;
}

impl<F: HostRegions + ?Sized> HostRegions for &mut F {
    type RegionMemory = F::RegionMemory;

    fn region(
        &mut self,
        region: Region,
        bytes: usize,
    ) -> Result<Self::RegionMemory, Self::MemoryError> {
        (**self).region(region, bytes)
    }

    fn views_max(&self) -> usize {
        (**self).views_max()
    }
}
