//! The check whether this device is safe for regions, and the memory of regions.
//!
//! A trial shows that the device denies writes without the right, before any region relies on that.

use std::sync::Arc;

use tramontane_core::fabric::Region;
use tramontane_core::layout::CACHE_LINE;

use super::{JoinError, RegionMemory, Site};
use crate::adapter::Pages;
use crate::protocol::update::REGION_LIST_BYTES_MAX;
use crate::settings::WriteOrder;
use crate::trial::{TrialVerdict, try_denial};

impl Site {
    /// Allocates the memory of a region in whole cache lines.
    ///
    /// # Errors
    /// Fails with [`JoinError::BadOptions`] if the region number is that of the rows, and otherwise
    /// with the system's error.
    pub fn region(&self, region: Region, bytes: usize) -> Result<RegionMemory, JoinError> {
        if region == Region::ROW {
            return Err(JoinError::BadOptions(
                "give the region a number that differs from the number of the rows",
            ));
        }
        let bytes = bytes.max(1).checked_next_multiple_of(CACHE_LINE).unwrap_or(usize::MAX);
        let pages = Pages::sized(bytes, self.page_size());
        let pages = pages.map_err(|source| self.failed("take memory", source))?;
        Ok(RegionMemory { region, pages: Arc::new(pages) })
    }

    /// Checks whether regions here are safe.
    ///
    /// # Errors
    /// Fails with [`JoinError::NotDenied`], or with another error if a command fails.
    pub fn check_regions(&self) -> Result<(), JoinError> {
        self.ensure_denial()
    }

    /// Returns the maximum number of bytes in one list to a region.
    #[must_use]
    pub fn region_list_bytes_max(&self) -> usize {
        let most = self.capabilities().write_bytes_max;
        match self.write_order {
            WriteOrder::ByDevice => most,
            WriteOrder::ByUpdates => most.min(REGION_LIST_BYTES_MAX),
        }
    }

    /// Ensures that this device denies writes whose right has been revoked. The trial runs once, at
    /// the latest for the first view with regions.
    ///
    /// # Errors
    /// Fails with [`JoinError::NotDenied`] if the device carries out writes without the right, and
    /// with another error if a command fails.
    pub(super) fn ensure_denial(&self) -> Result<(), JoinError> {
        // Updates are applied by their receiver, which knows the sender's right.
        if self.denial.get().is_some() || self.write_order == WriteOrder::ByUpdates {
            return Ok(());
        }
        let device = self.device().name.as_str();
        let tried = try_denial(self.context(), self.choice());
        match tried.map_err(|source| self.failed("test whether a write is denied", source))? {
            TrialVerdict::Denied => {}
            TrialVerdict::LetThrough => {
                return Err(JoinError::NotDenied { device: device.to_owned() });
            }
            // Some NICs have no loopback.
            TrialVerdict::Untried(why) => tracing::warn!(
                device,
                why,
                "cannot test whether this device denies writes without permission"
            ),
        }
        self.denial.get_or_init(|| ());
        Ok(())
    }
}
