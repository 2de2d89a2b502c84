//! Regions of a process: memory that all its views offer to their peers.

use std::sync::Arc;

use tramontane_core::fabric::{self, Region};
use tramontane_core::memory::RowWriter;

use super::JoinError;
use crate::adapter::Pages;

/// Maximum number of regions, because their numbers have five bits.
pub const REGIONS_MAX: usize = 32;

/// The memory of one of this process's regions, initially zero.
///
/// Each view that includes the region registers it for its own peers. Members of a view have the
/// same regions, but each owner chooses the length.
#[derive(Clone, Debug)]
pub struct RegionMemory {
    pub(super) region: Region,
    pub(super) pages: Arc<Pages>,
}

impl RegionMemory {
    /// Returns the region's number.
    #[must_use]
    pub const fn region(&self) -> Region {
        self.region
    }

    pub(crate) const fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }
}

impl fabric::RegionMemory for RegionMemory {
    fn writer(&self) -> RowWriter<'_> {
        self.pages.writer()
    }
}

/// Checks whether a view can have all these regions.
pub(super) fn check(regions: &[RegionMemory]) -> Result<(), JoinError> {
    if regions.len() > REGIONS_MAX {
        return Err(JoinError::BadOptions("give at most 32 regions"));
    }
    let is_twice = regions
        .iter()
        .enumerate()
        .any(|(index, one)| regions.iter().take(index).any(|other| other.region == one.region));
    if is_twice {
        return Err(JoinError::BadOptions("give each region its own number"));
    }
    Ok(())
}
