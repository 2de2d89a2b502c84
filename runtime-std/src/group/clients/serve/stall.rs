//! How long a client takes nothing.

use std::time::{Duration, Instant};

use tramontane_control::client_messages::ClientRefusal;

use super::cut::Cut;

/// A subscriber for which something waits, and that takes nothing for so long, is cut.
pub(crate) const STALL_MAX: Duration = Duration::from_secs(10);

/// Since when a client has taken nothing of what waits for it, and how much that is.
#[derive(Debug, Default)]
pub(crate) struct Stall(Option<(Instant, usize)>);

impl Stall {
    /// For how long it has taken nothing.
    pub(crate) fn lasts(&self, now: Instant) -> Duration {
        self.0.map_or(Duration::ZERO, |(since, _)| now.duration_since(since))
    }

    /// Notes how much waits for it. An error if it has taken nothing of that for too long.
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
