//! A trial that shows that the device denies writes without the right, before any region relies on
//! it.

use super::{JoinError, Site};
use crate::trial::{Verdict, try_denial};

impl Site {
    /// Ensures that this device denies writes whose right was revoked. The trial runs once, at the
    /// latest for the first view with regions.
    ///
    /// # Errors
    /// [`JoinError::NotDenied`] if the device carries out writes without the right, and any other
    /// if a command fails.
    pub(super) fn ensure_denial(&self) -> Result<(), JoinError> {
        if self.denial.get().is_some() {
            return Ok(());
        }
        let device = self.device().name.as_str();
        let tried = try_denial(self.context(), self.choice());
        match tried.map_err(|source| self.failed("try whether a write is denied", source))? {
            Verdict::Denied => {}
            Verdict::LetThrough => return Err(JoinError::NotDenied { device: device.to_owned() }),
            // Some NICs have no loopback.
            Verdict::Untried(why) => tracing::warn!(
                device,
                why,
                "this device cannot be tried for denial of writes without the right"
            ),
        }
        self.denial.get_or_init(|| ());
        Ok(())
    }
}
