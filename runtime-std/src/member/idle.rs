//! What to do between steps that find nothing: spin a little, give way, and after a while sleep.
//!
//! A wake-up of a sleeper on another processor costs about as much as twenty thousand idle steps, and
//! giving way on one processor as much as fifty (measured: see `docs/performance.md`). So a member that
//! shares its processor gives way early, and sleeps only once nothing came for a settable time.

use std::time::{Duration, Instant};

/// Idle steps before the first time the processor is given to somebody else.
const SPINS: u32 = 64;

/// Counts idle steps and says when it is time to sleep.
#[derive(Clone, Debug)]
pub struct Idle {
    patience: Duration,
    steps: u32,
    since: Option<Instant>,
}

impl Idle {
    /// Sleep is due once nothing came for `patience`.
    #[must_use]
    pub const fn new(patience: Duration) -> Self {
        Self { patience, steps: 0, since: None }
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
        if self.steps < SPINS {
            std::hint::spin_loop();
            return false;
        }
        self.give_way()
    }

    fn give_way(&mut self) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.patience {
            return true;
        }
        std::thread::yield_now();
        false
    }
}
