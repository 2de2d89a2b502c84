//! A copy without progress, and the cause: a disk that is read from, or a receiver that takes
//! nothing. The group detects a stopped member in half of the time allowed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::ledger::CopyLedger;
use tramontane_local::exit::Failure;

/// The activity of the packing thread.
#[derive(Debug, Default)]
pub(super) struct Pace {
    packed: AtomicU64,
    is_reading: AtomicBool,
}

impl Pace {
    /// Records that bytes have been read.
    pub(super) fn has_read(&self, bytes: usize) {
        self.packed.fetch_add(bytes as u64, Ordering::Relaxed);
        self.is_reading.store(true, Ordering::Relaxed);
    }

    /// Records that the next bytes are waiting for receivers, or that no bytes are left.
    pub(super) fn waits(&self) {
        self.is_reading.store(false, Ordering::Relaxed);
    }
}

/// Measures the time since the last progress.
#[derive(Debug)]
pub(super) struct Stall {
    since: Instant,
    limit: Duration,
    packed: u64,
    changes: u64,
}

impl Stall {
    pub(super) fn new(now: Instant, limit: Duration) -> Self {
        Self { since: now, limit, packed: 0, changes: 0 }
    }

    /// Fails if there has been no progress for too long, either at the sender or at any receiver.
    pub(super) fn check(
        &mut self,
        now: Instant,
        pace: &Pace,
        ledger: &CopyLedger,
    ) -> Result<(), Failure> {
        let packed = pace.packed.load(Ordering::Relaxed);
        if (packed, ledger.changes()) != (self.packed, self.changes) {
            (self.since, self.packed, self.changes) = (now, packed, ledger.changes());
        }
        if now.saturating_duration_since(self.since) < self.limit {
            return Ok(());
        }
        let seconds = self.limit.as_secs_f64();
        if pace.is_reading.load(Ordering::Relaxed) {
            let what =
                format_args!("the source could not be read for {seconds} s, after {packed} bytes");
            let advice = "check its disk, and copy again";
            return Err(Failure::input(what, advice));
        }
        let last = ledger.received().min_by_key(|(_, bytes)| *bytes);
        let (node, bytes) = last.unwrap_or_default();
        let what = format_args!(
            "the copy has made no progress for {seconds} s; node {node} has the least, {bytes} \
             bytes"
        );
        let advice = "check whether its disk has stopped, and copy again";
        Err(Failure::peer_lost(what, advice))
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages::CopyMessage;
    use super::*;
    use tramontane_local::exit::Status;

    #[test]
    fn stall_error_names_the_node_awaited() {
        let (start, pace) = (Instant::now(), Pace::default());
        let limit = Duration::from_secs(60);
        let mut ledger = CopyLedger::new(0, [1, 2], limit);
        ledger.apply(1, CopyMessage::Taken { chunks: 2, bytes: 20 });
        ledger.apply(2, CopyMessage::Taken { chunks: 1, bytes: 10 });
        let mut stall = Stall::new(start, limit);
        pace.has_read(100);
        let mut check = |pace: &Pace, ledger: &CopyLedger, seconds| {
            stall.check(start + Duration::from_secs(seconds), pace, ledger)
        };
        check(&pace, &ledger, 59).expect("it is read");
        check(&pace, &ledger, 118).expect("it was read at 59 s");
        let failure = check(&pace, &ledger, 119).expect_err("nothing was read for 60 s");
        assert_eq!(failure.status, Status::Input);
        assert!(failure.text().contains("100 bytes"), "{}", failure.text());

        pace.waits();
        let failure = check(&pace, &ledger, 119).expect_err("nothing was taken for 60 s");
        assert_eq!(failure.status, Status::PeerLost);
        assert!(failure.text().contains("node 2 has the least"), "{}", failure.text());

        pace.has_read(1);
        check(&pace, &ledger, 178).expect("a slow disk still makes progress");
        ledger.apply(2, CopyMessage::Taken { chunks: 1, bytes: 10 });
        check(&pace, &ledger, 200).expect("a receiver sent a notice");
        check(&pace, &ledger, 259).expect("that was 59 s ago");
    }
}
