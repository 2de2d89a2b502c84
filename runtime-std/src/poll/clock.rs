//! The time of what is stepped: read once in many steps, and after each upcall that took long.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};
use tramontane_core::ids::Time;

/// Steps between two readings: one costs as much as an idle step.
const STEPS_PER_READING: u32 = 64;

/// A clock that is cheap to ask whether anything took long.
#[derive(Debug)]
pub(crate) struct Clock {
    origin: Instant,
    now: Time,
    /// The kernel's tick, of a few milliseconds, in which `now` was read. To ask for it costs a
    /// fifth of a reading.
    tick: Timespec,
    /// Steps until the next reading.
    steps_left: u32,
    /// When peers are checked next.
    next_check: Time,
}

impl Clock {
    /// Starts at zero; it is read before the first step.
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            now: Time::ZERO,
            tick: tick(),
            steps_left: 0,
            next_check: Time::ZERO,
        }
    }

    /// The time as it was last read.
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

    /// Reads the time if the kernel's tick is another one than at the last reading.
    #[inline]
    pub(crate) fn read_if_late(&mut self) -> Time {
        if tick() == self.tick { self.now } else { self.read() }
    }

    /// The next step begins with a reading: something took long, or something changed.
    #[inline]
    pub(crate) fn read_at_next_step(&mut self) {
        self.steps_left = 0;
    }

    /// Counts a step. True if it begins with a reading.
    #[inline]
    pub(super) fn is_reading_due(&mut self) -> bool {
        if self.steps_left == 0 {
            self.steps_left = STEPS_PER_READING - 1;
            return true;
        }
        self.steps_left -= 1;
        false
    }

    /// Whether peers are to be checked now; the next time is after `interval`.
    pub(super) fn is_check_due(&mut self, interval: Duration) -> bool {
        let is_due = self.now >= self.next_check;
        if is_due {
            self.next_check = self.now.after(nanoseconds(interval));
        }
        is_due
    }
}

/// A duration as the core counts it.
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

    #[test]
    fn what_took_long_is_seen_and_what_did_not_costs_no_reading() {
        let mut clock = Clock::new();
        let before = clock.read();
        std::thread::sleep(Duration::from_millis(20));
        let late = clock.read_if_late();
        assert!(late.since(before) >= 19_000_000, "{before} to {late}");
        // Most pairs of looks are in one tick.
        let is_same = |_: &u32| {
            let before = clock.read();
            clock.read_if_late() == before
        };
        assert!((0..1_000).filter(is_same).count() > 500);
    }
}
