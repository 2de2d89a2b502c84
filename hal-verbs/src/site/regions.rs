//! Regions of a process: memory that all its views show to their peers.

use std::sync::Arc;

use tramontane_core::fabric::{self, Region};
use tramontane_core::layout::CACHE_LINE;
use tramontane_core::memory::RowWriter;

use super::{JoinError, Site};
use crate::adapter::Pages;
use crate::settings::WriteOrder;

/// The largest number of regions: their numbers have five bits.
pub const REGIONS_MAX: usize = 32;

/// The memory of one of this process's regions, initially zero.
///
/// Each view that includes the region registers it for its own peers. Members of a view have the
/// same regions; each owner chooses the length.
#[derive(Clone, Debug)]
pub struct RegionMemory {
    region: Region,
    pages: Arc<Pages>,
}

impl RegionMemory {
    /// Its name.
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

impl Site {
    /// Allocates the memory of a region in whole cache lines.
    ///
    /// # Errors
    /// [`JoinError::NoWriteOrder`] if lists travel as updates; [`JoinError::BadOptions`] for the
    /// region number of the rows; otherwise the system's error.
    pub fn region(&self, region: Region, bytes: usize) -> Result<RegionMemory, JoinError> {
        self.check_region_order()?;
        if region == Region::ROW {
            return Err(JoinError::BadOptions("give a region another number than the rows have"));
        }
        let bytes = bytes.max(1).checked_next_multiple_of(CACHE_LINE).unwrap_or(usize::MAX);
        let pages = Pages::sized(bytes, self.page_size());
        let pages = pages.map_err(|source| self.failed("take memory", source))?;
        Ok(RegionMemory { region, pages: Arc::new(pages) })
    }

    /// Checks whether regions here support a protocol that relies on a completed write being
    /// visible at the peer.
    ///
    /// # Errors
    /// [`JoinError::NoWriteOrder`], [`JoinError::NotVisible`], [`JoinError::NotDenied`], or another
    /// one if a command fails.
    pub fn check_regions(&self) -> Result<(), JoinError> {
        self.check_region_order()?;
        if !self.order.visible_upon_completion {
            return Err(JoinError::NotVisible { device: self.device().name.clone() });
        }
        self.ensure_denial()
    }

    fn check_region_order(&self) -> Result<(), JoinError> {
        if self.write_order == WriteOrder::ByUpdates {
            let device = self.device().name.clone();
            return Err(JoinError::NoWriteOrder { device, what: "regions" });
        }
        Ok(())
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
