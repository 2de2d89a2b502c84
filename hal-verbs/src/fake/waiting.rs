//! Whoever waits for a completion in virtual time, in one call: it moves the time itself.

use super::CompletionQueue;

impl CompletionQueue {
    /// In virtual time: lets the next thing happen; false if nothing will. None where time moves by
    /// itself.
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
