//! The time of a member: read between steps, and after each upcall that took long.

use std::time::Instant;

use rustix::time::{ClockId, Timespec, clock_gettime};
use tramontane_core::ids::Time;

use super::membership::nanoseconds;

/// A clock that is cheap to ask whether anything took long.
#[derive(Debug)]
pub(super) struct Clock {
    origin: Instant,
    now: Time,
    /// The kernel's tick, of a few milliseconds, in which `now` was read. To ask for it costs a fifth of a reading.
    tick: Timespec,
}

impl Clock {
    /// Starts at zero.
    pub(super) fn new() -> Self {
        Self { origin: Instant::now(), now: Time::ZERO, tick: tick() }
    }

    /// The time as it was last read.
    pub(super) const fn now(&self) -> Time {
        self.now
    }

    /// Reads the time.
    pub(super) fn read(&mut self) -> Time {
        self.tick = tick();
        self.now = Time(nanoseconds(self.origin.elapsed()));
        self.now
    }

    /// Reads the time if the kernel's tick is another one than at the last reading.
    #[inline]
    pub(super) fn read_if_late(&mut self) -> Time {
        if tick() == self.tick { self.now } else { self.read() }
    }
}

#[inline]
fn tick() -> Timespec {
    clock_gettime(ClockId::MonotonicCoarse)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
