//! The pause between steps that find no work. A thread first spins for a little, then yields, and
//! eventually sleeps.
//!
//! Waking a sleeper on another processor costs about as much as five hundred idle steps; yielding
//! on one processor costs as much as forty (see `docs/lab-notes/tcp.md`). So a member that shares
//! its processor yields early, and a member that does not share it spins. Either sleeps only when
//! nothing has arrived for a configurable time. The duration of a yield shows whether the processor
//! is shared.
//!
//! A thread that only computes keeps a processor that it is given for milliseconds, even at a low
//! priority. A sleeper takes the processor back as soon as it is woken. So beside such a thread, a
//! member sleeps instead of yielding.

use std::time::{Duration, Instant};

/// Number of idle steps before the thread yields if no other thread uses the processor.
const SPINS_MAX: u32 = 64;

/// Number of idle steps before the thread yields if another thread uses the processor. The sender
/// that this thread waits for may need the processor.
const SPINS_MIN: u32 = 2;

/// A yield that took longer than this gave the processor to another thread.
const TAKEN: Duration = Duration::from_nanos(1_000);

/// A yield that took longer than this gave the processor to a thread that only computes.
const KEPT: Duration = Duration::from_millis(1);

/// The time for which a member sleeps instead of yielding after such a yield.
const NO_YIELDS: Duration = Duration::from_millis(200);

/// Counts idle steps and decides when it is time to sleep.
#[derive(Clone, Debug)]
pub struct Idle {
    patience: Duration,
    steps: u32,
    spins: u32,
    since: Option<Instant>,
    /// Until then, the processor is not given to another thread.
    no_yields_until: Option<Instant>,
}

impl Idle {
    /// Creates a counter that lets the thread sleep when nothing has arrived for `patience`.
    #[must_use]
    pub const fn new(patience: Duration) -> Self {
        Self { patience, steps: 0, spins: SPINS_MAX, since: None, no_yields_until: None }
    }

    /// Starts over because work has arrived.
    #[inline]
    pub fn reset(&mut self) {
        self.steps = 0;
        self.since = None;
    }

    /// Spins or yields after a step without work. Returns true if it is time to sleep.
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
        if now - since >= self.patience || self.no_yields_until.is_some_and(|until| now < until) {
            return true;
        }
        std::thread::yield_now();
        self.yielded(now, now.elapsed());
        false
    }

    /// Concludes from the duration of a yield who else uses the processor.
    fn yielded(&mut self, at: Instant, took: Duration) {
        self.spins = if took > TAKEN { SPINS_MIN } else { (self.spins * 2).min(SPINS_MAX) };
        self.no_yields_until = (took > KEPT).then(|| at + took + NO_YIELDS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_due_after_spinning_and_idle_time() {
        let mut idle = Idle::new(Duration::ZERO);
        let spins = (1..).find(|_| idle.pause());
        assert_eq!(spins, Some(SPINS_MAX));
        idle.reset();
        assert!(!idle.pause(), "something came meanwhile");
    }

    #[test]
    fn sleep_follows_a_yield_to_a_computing_thread() {
        let (mut idle, now) = (Idle::new(Duration::MAX), Instant::now());
        idle.yielded(now, KEPT);
        assert_eq!(idle.no_yields_until, None, "that thread was waiting too");
        idle.yielded(now, 2 * KEPT);
        idle.reset();
        let spins = (1..100).find(|_| idle.pause());
        assert_eq!(spins, Some(SPINS_MIN), "the others get no second chance");
        idle.yielded(now.checked_sub(2 * NO_YIELDS).expect("a past"), 2 * KEPT);
        idle.reset();
        assert!(!(0..SPINS_MIN).any(|_| idle.pause()), "the thread may be gone");
    }
}
