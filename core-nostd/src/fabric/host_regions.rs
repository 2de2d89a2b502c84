//! Regions in a host's fabric: their memory, and views that open and close independently.
//!
//! Requirement: FAB-3.

use super::host::HostFabric;
use super::permissions::Permissions;
use super::write::Region;
use crate::memory::RowWriter;

/// The local memory of a region. It stays mapped, registered or allocated as long as a clone of
/// this value exists.
pub trait RegionMemory: Clone + Send + Sync + 'static {
    /// Returns a writer for the bytes, which are accessed in cells of eight as in a row. Peers with
    /// permission write to the same bytes.
    fn writer(&self) -> RowWriter<'_>;
}

/// A fabric that allocates the memory of regions and can keep many views open at once.
///
/// # Requirements on implementations
/// - A region is memory of the process, not of a view: every view that is opened later exposes it
///   to its peers. Each member's own plan sets the length of its region.
/// - A permission to write applies to one peer in one view. Opening a view grants no permission.
/// - At least [`HostRegions::views_max`] views can be open at once, with ids in any order. A view
///   that has ended no longer counts, and its id is not used again.
pub trait HostRegions: HostFabric + Permissions {
    /// Memory of a region.
    type RegionMemory: RegionMemory;

    /// Allocates the local memory of a region, all zero. It must be called before the first view is
    /// created. The call may take a while for large sizes, but never waits for another member.
    ///
    /// # Errors
    /// Fails if the region is the one for rows, if the region or any view has been created before,
    /// or if there are too many regions or too little memory.
    fn region(
        &mut self,
        region: Region,
        bytes: usize,
    ) -> Result<Self::RegionMemory, Self::MemoryError>;

    /// Returns the number of views that may be open at once.
    fn views_max(&self) -> usize;
}
