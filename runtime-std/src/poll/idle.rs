//! What to do between steps that find nothing: spin a little, give way, and after a while sleep.
//!
//! A wake-up of a sleeper on another processor costs about as much as five hundred idle steps, and
//! giving way on one processor as much as forty (see `docs/lab-notes/tcp.md`). So a member that
//! shares its processor gives way early, one that has it alone spins, and either sleeps only once
//! nothing came for a settable time. Whether the processor is shared is seen by how long an offer
//! of it took.

use std::time::{Duration, Instant};

/// Idle steps before the processor is offered to somebody else, where nobody takes it.
const SPINS_MAX: u32 = 64;

/// The same where somebody does: whoever waits for us may be waiting for this processor.
const SPINS_MIN: u32 = 2;

/// An offer that took longer than this was taken.
const TAKEN: Duration = Duration::from_nanos(1_000);

/// Counts idle steps and says when it is time to sleep.
#[derive(Clone, Debug)]
pub struct Idle {
    patience: Duration,
    steps: u32,
    spins: u32,
    since: Option<Instant>,
}

impl Idle {
    /// Sleep is due once nothing came for `patience`.
    #[must_use]
    pub const fn new(patience: Duration) -> Self {
        Self { patience, steps: 0, spins: SPINS_MAX, since: None }
    }

    /// Something came.
    #[inline]
    pub fn reset(&mut self) {
        self.steps = 0;
        self.since = None;
    }

    /// Nothing came: spins or gives way. True if it is time to sleep.
    #[inline]
    pub fn pause(&mut self) -> bool {
        self.steps = self.steps.wrapping_add(1);
        if self.steps < self.spins {
            std::hint::spin_loop();
            return false;
        }
        self.give_way()
    }

    fn give_way(&mut self) -> bool {
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        if now - since >= self.patience {
            return true;
        }
        std::thread::yield_now();
        self.spins =
            if now.elapsed() > TAKEN { SPINS_MIN } else { (self.spins * 2).min(SPINS_MAX) };
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_due_once_patience_is_out_and_not_before_the_spins() {
        let mut idle = Idle::new(Duration::ZERO);
        let spins = (1..).find(|_| idle.pause());
        assert_eq!(spins, Some(SPINS_MAX));
        idle.reset();
        assert!(!idle.pause(), "something came meanwhile");
        let mut patient = Idle::new(Duration::MAX);
        assert!((0..10 * SPINS_MAX).all(|_| !patient.pause()));
    }
}
