//! Trials that show that the device denies writes without the right, before any region relies on
//! it.

use super::{JoinError, Site};
use crate::settings::WriteKeys;
use crate::trial::{RightsTrial, RightsWay, Verdict, try_way};

/// Bytes of memory for the trial at the start: several packets.
const TRIAL_BYTES: usize = 8 << 10;

/// Windows are tried twice: on soft-RoCE a window can be bound again only so often.
const WINDOW_ROUNDS: u32 = 2;

impl Site {
    /// Tries on this device, over two queue pairs that are connected to each other, whether a write
    /// without the right is denied, and how long changes of the right take. `bytes` is the size of
    /// the memory that each change covers; each write is at most 64 KiB of it.
    ///
    /// # Errors
    /// [`JoinError`], if a command fails.
    pub fn try_rights(
        &self,
        way: RightsWay,
        bytes: usize,
        rounds: u32,
    ) -> Result<RightsTrial, JoinError> {
        try_way(self.context(), self.choice(), way, bytes, rounds)
            .map_err(|source| self.failed("try whether a write is denied", source))
    }

    /// Returns the kind of keys with which peers write to regions: the requested kind, or the
    /// fallback if the device does not support it. The trial runs once, at the latest for the first
    /// view with regions.
    ///
    /// # Errors
    /// [`JoinError::NotDenied`] if the device carries out writes without the right, and any other
    /// if a command fails.
    pub fn write_keys(&self) -> Result<WriteKeys, JoinError> {
        if let Some(known) = self.write_keys.get() {
            return Ok(*known);
        }
        let found = self.find_write_keys()?;
        Ok(*self.write_keys.get_or_init(|| found))
    }

    fn find_write_keys(&self) -> Result<WriteKeys, JoinError> {
        let device = self.device().name.as_str();
        if self.limits().write_keys == WriteKeys::Windows {
            match self.try_rights(RightsWay::Window, TRIAL_BYTES, WINDOW_ROUNDS) {
                Ok(RightsTrial { verdict: Verdict::Denied, .. }) => return Ok(WriteKeys::Windows),
                Ok(trial) => tracing::warn!(
                    device,
                    verdict = ?trial.verdict,
                    "windows are not safe here: keys are registrations"
                ),
                Err(error) => {
                    tracing::warn!(device, %error, "no windows here: keys are registrations");
                }
            }
        }
        let way = RightsWay::Registration;
        match self.try_rights(way, TRIAL_BYTES, 1)?.verdict {
            Verdict::Denied => {}
            Verdict::LetThrough => {
                return Err(JoinError::NotDenied { device: device.to_owned(), way });
            }
            // Some NICs have no loopback.
            Verdict::Untried(why) => tracing::warn!(
                device,
                why,
                "this device cannot be tried for denial of writes without the right"
            ),
        }
        Ok(WriteKeys::Registrations)
    }
}
