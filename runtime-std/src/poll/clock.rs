//! The clock of a stepped node. It is read once per several steps, and more often if steps take
//! long, because a member that does not read the clock shows no heartbeat.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};
use tramontane_core::ids::Time;

/// Number of steps between two readings. A reading costs as much as an idle step.
const STEPS_PER_READING: u32 = 64;

/// Number of steps between two checks of the kernel's tick. A check costs a fifth of an idle
/// step over shared memory. Over TCP with many peers, a step takes much longer.
const STEPS_PER_CHECK: u32 = 8;

/// A clock that can check cheaply whether anything took long.
#[derive(Debug)]
pub(crate) struct Clock {
    origin: Instant,
    now: Time,
    /// The kernel tick, a few milliseconds long, during which `now` was read. Reading the tick
    /// costs a fifth of reading the time.
    tick: Timespec,
    /// Number of steps until the next reading.
    steps_left: u32,
    /// The time of the next check of the peers.
    next_check: Time,
}

impl Clock {
    /// Creates a clock at zero, which is read before the first step.
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            now: Time::ZERO,
            tick: tick(),
            steps_left: 0,
            next_check: Time::ZERO,
        }
    }

    /// Returns the time of the last reading.
    #[inline]
    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// Reads the time.
    pub(crate) fn read(&mut self) -> Time {
        self.tick = tick();
        self.now = Time(nanoseconds(self.origin.elapsed()));
        self.now
    }

    /// Reads the time if the kernel's tick has changed since the last reading.
    #[inline]
    pub(crate) fn read_if_late(&mut self) -> Time {
        if tick() == self.tick { self.now } else { self.read() }
    }

    /// Makes the next step begin with a reading, because something took long or has changed.
    #[inline]
    pub(crate) fn read_at_next_step(&mut self) {
        self.steps_left = 0;
    }

    /// Counts a step. Returns whether it begins with a reading.
    #[inline]
    pub(super) fn is_reading_due(&mut self) -> bool {
        if self.steps_left.is_multiple_of(STEPS_PER_CHECK) && tick() != self.tick {
            self.steps_left = 0;
        }
        if self.steps_left == 0 {
            self.steps_left = STEPS_PER_READING - 1;
            return true;
        }
        self.steps_left -= 1;
        false
    }

    /// Returns whether it is time to check the peers. The next check is due after `interval`.
    pub(super) fn is_check_due(&mut self, interval: Duration) -> bool {
        let is_due = self.now >= self.next_check;
        if is_due {
            self.next_check = self.now.after(nanoseconds(interval));
        }
        is_due
    }
}

/// Converts a duration to nanoseconds, the unit of the core.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[inline]
fn tick() -> Timespec {
    clock_gettime(ClockId::MonotonicCoarse)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of steps, none of which did work, until one begins with a reading.
    fn steps_until_reading(clock: &mut Clock, step: impl Fn()) -> u32 {
        let mut steps = 1;
        while !clock.is_reading_due() {
            steps += 1;
            step();
        }
        clock.read();
        steps
    }

    #[test]
    fn slow_steps_make_readings_more_frequent() {
        let mut clock = Clock::new();
        assert_eq!(steps_until_reading(&mut clock, || {}), 1, "the first step");
        // Most of these fall into one tick.
        let fast: Vec<u32> = (0..100).map(|_| steps_until_reading(&mut clock, || {})).collect();
        assert!(fast.iter().filter(|steps| **steps == STEPS_PER_READING).count() > 50, "{fast:?}");
        let slow = || std::thread::sleep(Duration::from_millis(20));
        assert!(steps_until_reading(&mut clock, slow) <= STEPS_PER_CHECK);
    }

    #[test]
    fn clock_is_read_again_only_after_long_work() {
        let mut clock = Clock::new();
        let before = clock.read();
        std::thread::sleep(Duration::from_millis(20));
        let late = clock.read_if_late();
        assert!(late.since(before) >= 19_000_000, "{before} to {late}");
        // Most pairs of readings fall into one tick.
        let is_same = |_: &u32| {
            let before = clock.read();
            clock.read_if_late() == before
        };
        assert!((0..1_000).filter(is_same).count() > 500);
    }
}
