//! Clocks of the machine, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// Returns the monotonic clock, which is the same for all processes of this machine.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Returns the processor time of this thread, excluding the time of other threads.
#[must_use]
pub fn thread_time_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

/// Returns the processor time of all threads of this process.
#[must_use]
pub fn process_time_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

#[inline]
fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
