//! The machine's monotonic clock: one for all processes.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine started.
#[inline]
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(now.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(now.tv_nsec))
}
