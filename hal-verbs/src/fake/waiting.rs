//! Waiting for a completion in virtual time, within one call: the waiting call itself advances the
//! time.

use super::CompletionQueue;

impl CompletionQueue {
    /// In virtual time, carries out the next event and returns whether there was one. Returns
    /// `None` if time advances by itself.
    pub(crate) fn move_time(&self) -> Option<bool> {
        let core = self.core();
        if !core.is_virtual() {
            return None;
        }
        Some(core.with(|hardware| {
            let next = hardware.agenda.next_at();
            if let Some(at) = next {
                hardware.run_until(at);
            }
            next.is_some()
        }))
    }
}
