//! Clocks of the machine, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock, which all processes of this machine see alike.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Processor time that this thread has had: what others take of the processor is not in it.
#[must_use]
pub fn thread_time_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

/// Processor time that all threads of this process have had.
#[must_use]
pub fn process_time_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

#[inline]
fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
