//! The check whether this device is safe for regions, and the memory of regions.
//!
//! A trial shows that the device denies writes without the right, before any region relies on that.

use std::sync::Arc;

use tramontane_core::fabric::Region;
use tramontane_core::layout::CACHE_LINE;

use super::{JoinError, RegionMemory, Site};
use crate::adapter::Pages;
use crate::settings::WriteOrder;
use crate::trial::{TrialVerdict, try_denial};

impl Site {
    /// Allocates the memory of a region in whole cache lines.
    ///
    /// # Errors
    /// Fails with [`JoinError::NoWriteOrder`] if lists are sent as updates; with
    /// [`JoinError::BadOptions`] if the region number is that of the rows; and otherwise with the
    /// system's error.
    pub fn region(&self, region: Region, bytes: usize) -> Result<RegionMemory, JoinError> {
        self.check_region_order()?;
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

    /// Checks whether regions here support a protocol that relies on a completed write being
    /// visible at the peer.
    ///
    /// # Errors
    /// Fails with [`JoinError::NoWriteOrder`], [`JoinError::NotVisible`] or
    /// [`JoinError::NotDenied`], or with another error if a command fails.
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

    /// Ensures that this device denies writes whose right has been revoked. The trial runs once, at
    /// the latest for the first view with regions.
    ///
    /// # Errors
    /// Fails with [`JoinError::NotDenied`] if the device carries out writes without the right, and
    /// with another error if a command fails.
    pub(super) fn ensure_denial(&self) -> Result<(), JoinError> {
        if self.denial.get().is_some() {
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
