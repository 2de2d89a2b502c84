//! A copy that stands still, and whose fault that is: a disk that is read from, or a member that takes nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cli::exit::{Failure, Status};

/// A copy that stands still for so long has a member that is stopped, or a disk that is.
pub(super) const STANDSTILL_MAX: Duration = Duration::from_secs(60);

/// A root that says nothing for so long is stopped: it says every few seconds that it is there.
pub(super) const ROOT_SILENT_MAX: Duration = STANDSTILL_MAX;

/// What the root's packing thread is at.
#[derive(Debug, Default)]
pub(super) struct Pace {
    packed: AtomicU64,
    is_reading: AtomicBool,
}

impl Pace {
    /// So many bytes more were read; the next are.
    pub(super) fn has_read(&self, bytes: usize) {
        self.packed.fetch_add(bytes as u64, Ordering::Relaxed);
        self.is_reading.store(true, Ordering::Relaxed);
    }

    /// The next bytes wait for receivers, or there are none.
    pub(super) fn waits(&self) {
        self.is_reading.store(false, Ordering::Relaxed);
    }
}

/// Since when nothing has gone on.
#[derive(Debug)]
pub(super) struct Standstill {
    since: Instant,
    packed: u64,
}

impl Standstill {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, packed: 0 }
    }

    /// A receiver said something.
    pub(super) fn heard(&mut self, now: Instant) {
        self.since = now;
    }

    /// Fails if nothing has gone on for long, neither at the root nor at a receiver: a member that is stopped keeps its
    /// connections. `received` is what each has.
    pub(super) fn check(
        &mut self,
        now: Instant,
        pace: &Pace,
        received: &BTreeMap<u32, u64>,
    ) -> Result<(), Failure> {
        let packed = pace.packed.load(Ordering::Relaxed);
        if packed != self.packed {
            (self.since, self.packed) = (now, packed);
        }
        if now.saturating_duration_since(self.since) < STANDSTILL_MAX {
            return Ok(());
        }
        let seconds = STANDSTILL_MAX.as_secs();
        if pace.is_reading.load(Ordering::Relaxed) {
            let what = format_args!(
                "what is copied could not be read on for {seconds} s, after {packed} bytes"
            );
            return Err(Failure::new(
                Status::Input,
                what,
                "see whether its disk is there, and copy again",
            ));
        }
        let last = received.iter().min_by_key(|(_, bytes)| **bytes);
        let (node, bytes) = last.map_or((0, 0), |(node, bytes)| (*node, *bytes));
        let what = format_args!(
            "the copy has stood still for {seconds} s; node {node} is the last, with {bytes} bytes"
        );
        Err(Failure::new(
            Status::PeerLost,
            what,
            "see whether it is stopped, or its disk is, and copy again",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_waited_for_is_blamed() {
        let (start, pace) = (Instant::now(), Pace::default());
        let received = BTreeMap::from([(1, 20), (2, 10)]);
        let mut standstill = Standstill::new(start);
        pace.has_read(100);
        let mut check = |pace: &Pace, seconds| {
            standstill.check(start + Duration::from_secs(seconds), pace, &received)
        };
        check(&pace, 59).expect("it is read");
        check(&pace, 118).expect("it was read at 59 s");
        let failure = check(&pace, 119).expect_err("nothing was read for 60 s");
        assert_eq!(failure.status, Status::Input);
        assert!(failure.text().contains("100 bytes"), "{}", failure.text());

        pace.waits();
        let failure = check(&pace, 119).expect_err("nothing was taken for 60 s");
        assert_eq!(failure.status, Status::PeerLost);
        assert!(failure.text().contains("node 2 is the last"), "{}", failure.text());

        pace.has_read(1);
        check(&pace, 178).expect("a slow disk is none that stands still");
        standstill.heard(start + Duration::from_secs(200));
        standstill
            .check(start + Duration::from_secs(259), &pace, &received)
            .expect("a receiver said something");
    }
}
