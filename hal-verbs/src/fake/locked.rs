//! The limit on the memory that a process may lock. Registrations and the rings of queues count
//! towards it.

use std::io;

use rustix::io::Errno;

use super::hardware::Hardware;
use crate::adapter::QueuePairLimits;

/// Size, in bytes, of a ring entry without inline bytes.
const ENTRY_BYTES: u64 = 64;

/// Returns the size, in bytes, of a queue pair's rings.
pub(super) fn ring_bytes(limits: QueuePairLimits) -> u64 {
    let send = ENTRY_BYTES + u64::from(limits.inline_bytes_max);
    u64::from(limits.sends_max) * send + u64::from(limits.receives_max) * ENTRY_BYTES
}

/// Returns the size of a completion queue in bytes.
pub(super) const fn queue_bytes(entries: u64) -> u64 {
    entries.saturating_mul(ENTRY_BYTES)
}

impl Hardware {
    /// Refuses an allocation that would exceed the process's limit.
    pub(super) fn check_locked(&self, context: u64, more: u64) -> io::Result<()> {
        let Some(most) = self.check(context)?.profile.locked_bytes_max else { return Ok(()) };
        let regions = self.regions.values().filter(|region| region.context == context);
        let pairs = self.pairs.values().filter(|pair| pair.context == context);
        let queues = self.queues.values().filter(|queue| queue.context == context);
        let entries = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let locked = regions.map(|region| region.bytes).sum::<u64>()
            + pairs.map(|pair| ring_bytes(pair.limits)).sum::<u64>()
            + queues.map(|queue| queue_bytes(entries(queue.entries_max))).sum::<u64>();
        if locked.saturating_add(more) > most { Err(Errno::NOMEM.into()) } else { Ok(()) }
    }
}
