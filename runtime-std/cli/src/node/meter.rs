//! Counts the bytes that pass through a node, and measures the latency of lines.
//!
//! Metering does not slow messages down: bytes are counted per batch, where lines are read and logs
//! are written. The latency is measured for one line at a time, from reading it to its delivery
//! here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tramontane_core::ids::SubgroupId;

use tramontane_runtime::metrics::Histogram;

/// Upper ends of the time buckets, in seconds: 10 us to 10 s, each about three times the previous
/// one.
const CLASSES: [f64; 13] =
    [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// Times from reading a line to delivering it.
type Latency = Histogram<{ CLASSES.len() }>;

/// The line being measured: its number, and the time of its reading.
type MeasuredLine = (u64, Instant);

/// The counters of one node.
pub(super) struct Meter {
    /// The subgroup that lines go to.
    subgroup: Option<SubgroupId>,
    pub(super) delivered_bytes: AtomicU64,
    pub(super) sent_bytes: AtomicU64,
    /// Time from reading a line to its delivery here, including the wait for a slot.
    latency: Mutex<Latency>,
    /// Number of the line being measured, counted from 1; 0 if no line is being measured.
    awaited: AtomicU64,
    under_way: Mutex<Option<MeasuredLine>>,
}

impl Meter {
    /// Creates the meter of a node whose lines go to `subgroup`.
    pub(super) fn new(subgroup: Option<SubgroupId>) -> Arc<Self> {
        Arc::new(Self {
            subgroup,
            delivered_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            latency: Mutex::new(Histogram::new(CLASSES)),
            awaited: AtomicU64::new(0),
            under_way: Mutex::new(None),
        })
    }

    /// Notes that line `number` is about to be sent. Lines that are handed over are numbered from
    /// 1.
    pub(super) fn goes_out(&self, number: u64) {
        if self.awaited.load(Ordering::Relaxed) == 0 {
            *self.under_way() = Some((number, Instant::now()));
            self.awaited.store(number, Ordering::Release);
        }
    }

    /// Notes that line `number` was not sent. The next line gets its number.
    pub(super) fn stays(&self, number: u64) {
        if self.awaited.load(Ordering::Relaxed) == number {
            self.awaited.store(0, Ordering::Release);
        }
    }

    /// Adds `bytes`, the size of a line that was sent. Only one thread sends.
    ///
    /// An atomic addition would wait until the line that was just written to its slot has left the
    /// processor's store buffer, which takes longer than all other work on a short line.
    pub(super) fn sent(&self, bytes: usize) {
        let before = self.sent_bytes.load(Ordering::Relaxed);
        self.sent_bytes.store(before + bytes as u64, Ordering::Relaxed);
    }

    /// Records the delivery of a batch. `bytes` is the size of all its messages, and `own` is the
    /// number of this node's messages delivered so far in the subgroup of its lines.
    pub(super) fn delivered(&self, bytes: usize, own: u64) {
        self.delivered_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let awaited = self.awaited.load(Ordering::Acquire);
        if awaited == 0 || own < awaited {
            return;
        }
        if let Some((_, since)) = self.under_way().take_if(|(number, _)| *number == awaited) {
            self.latencies().observe(since.elapsed().as_secs_f64());
        }
        self.awaited.store(0, Ordering::Release);
    }

    /// Returns whether lines go to `subgroup`.
    pub(super) fn is_of(&self, subgroup: SubgroupId) -> bool {
        self.subgroup == Some(subgroup)
    }

    /// Returns the measured times.
    pub(super) fn latencies(&self) -> MutexGuard<'_, Latency> {
        self.latency.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn under_way(&self) -> MutexGuard<'_, Option<MeasuredLine>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Meter").field("subgroup", &self.subgroup).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meter_measures_one_line_at_a_time() {
        let meter = Meter::new(Some(SubgroupId(1)));
        assert!(meter.is_of(SubgroupId(1)) && !meter.is_of(SubgroupId(0)));
        meter.delivered(10, 0);
        meter.goes_out(1);
        meter.goes_out(2);
        meter.delivered(5, 0);
        assert_eq!(meter.awaited.load(Ordering::Relaxed), 1);
        meter.delivered(5, 2);
        assert_eq!(meter.awaited.load(Ordering::Relaxed), 0);
        assert_eq!(meter.delivered_bytes.load(Ordering::Relaxed), 20);
        // A refused line is not measured.
        meter.goes_out(3);
        meter.stays(3);
        meter.delivered(0, 3);
        assert_eq!(meter.awaited.load(Ordering::Relaxed), 0);
    }
}
