//! Measures how long a client has received nothing.

use std::time::{Duration, Instant};

use tramontane_control::client_messages::ClientRefusal;

use super::cut::Cut;

/// The time after which a subscriber is disconnected if it has received none of the data queued for
/// it.
pub(crate) const STALL_MAX: Duration = Duration::from_secs(10);

/// The time since when a client has received none of its queued data, and the amount queued.
#[derive(Debug, Default)]
pub(crate) struct Stall(Option<(Instant, usize)>);

impl Stall {
    /// Returns how long the client has received nothing.
    pub(crate) fn lasts(&self, now: Instant) -> Duration {
        self.0.map_or(Duration::ZERO, |(since, _)| now.duration_since(since))
    }

    /// Records the amount of queued data. Fails if the client has received none of it for too long.
    pub(crate) fn watch(&mut self, unsent: usize, now: Instant) -> Result<(), Cut> {
        match self.0 {
            _ if unsent == 0 => self.0 = None,
            Some((since, before)) if before == unsent => {
                if now.duration_since(since) >= STALL_MAX {
                    return Err(Cut::Refused(ClientRefusal::TooSlow));
                }
            }
            _ => self.0 = Some((now, unsent)),
        }
        Ok(())
    }
}
