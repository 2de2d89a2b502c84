//! The thread that mirrors one topic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use tramontane::SharedStatus;

use super::ledger::{Deed, FromGroup, FromRtps, Ledger};
use super::rtps::{Heard, RtpsTopic};
use crate::cdr::{Encoding, InstanceHandle, Octets};
use crate::error::DdsError;
use crate::reader::{DataReader, DataReaderListener, Disposition, Lent};
use crate::time::Timestamp;
use crate::writer::DataWriter;

/// Maximum pause, after which the thread checks whether the view has changed.
const REST: Duration = Duration::from_millis(5);

/// Maximum time for which an ending mirror waits for reliable RTPS readers that lag behind.
const SETTLE_MAX: Duration = Duration::from_secs(2);

/// Number of samples forwarded between two checks of the view.
const DEEDS_MAX: usize = 256;

/// The counters of a mirror.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorCounts {
    /// Number of samples from RTPS that were written in the group.
    pub entered: u64,
    /// Number of samples in the group's order that were written on RTPS.
    pub went_out: u64,
    /// Number of samples, in both directions, that could not be forwarded, or not in time.
    pub left_out: u64,
}

/// The counters that the mirror, its listener and the gateway share.
#[derive(Debug, Default)]
pub(super) struct Tally {
    entered: AtomicU64,
    went_out: AtomicU64,
    left_out: AtomicU64,
}

impl Tally {
    pub(super) fn counts(&self) -> MirrorCounts {
        MirrorCounts {
            entered: self.entered.load(Ordering::Relaxed),
            went_out: self.went_out.load(Ordering::Relaxed),
            left_out: self.left_out.load(Ordering::Relaxed),
        }
    }

    /// Counts samples that are left out, and logs the total each time it has doubled.
    fn leave_out(&self, count: u64, why: &dyn std::fmt::Display) {
        let before = self.left_out.fetch_add(count, Ordering::Relaxed);
        let left_out = before + count;
        if left_out.next_power_of_two() != before.next_power_of_two() || before == 0 {
            tracing::warn!(left_out, "dropped a sample: {why}");
        }
    }
}

/// One topic between the group and RTPS.
pub(super) struct Mirror {
    pub(super) own: u32,
    pub(super) gateways: Vec<u32>,
    pub(super) status: SharedStatus,
    pub(super) ledger: Ledger,
    pub(super) sample_max: usize,
    pub(super) rtps: RtpsTopic,
    pub(super) writer: DataWriter<Octets>,
    pub(super) reader: DataReader<Octets>,
    pub(super) ordered: Receiver<FromGroup>,
    pub(super) tally: Arc<Tally>,
    pub(super) ends: Arc<AtomicBool>,
}

/// Returns a listener that forwards the order, and the receiver that gets it.
pub(super) fn ordered(tally: &Arc<Tally>) -> (Ordered, Receiver<FromGroup>) {
    let (sender, receiver) = channel();
    (Ordered(sender, Arc::clone(tally)), receiver)
}

/// The listener that forwards the order.
pub(super) struct Ordered(Sender<FromGroup>, Arc<Tally>);

impl DataReaderListener<Octets> for Ordered {
    fn on_sample(&mut self, sample: &Lent<'_, Octets>) -> Disposition {
        let info = sample.info();
        if !info.valid_data {
            return Disposition::Taken;
        }
        if info.encoding == Encoding::CDR_LE {
            // A mirror that has ended does not receive the sample.
            let _ = self.0.send(FromGroup {
                ordinal: info.ordinal,
                origin: info.origin,
                source: info.source_timestamp,
                cdr: sample.cdr().to_vec(),
            });
        } else {
            self.1.leave_out(1, &"its byte order is not supported");
        }
        Disposition::Taken
    }
}

/// Wakes the thread when RTPS has an event.
struct UnparkMirror(Thread);

impl Wake for UnparkMirror {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Mirror {
    /// Forwards samples until the gateway or the participant ends.
    pub(super) fn run(mut self) -> Result<(), DdsError> {
        let waker = Waker::from(Arc::new(UnparkMirror(std::thread::current())));
        while !self.ends.load(Ordering::Acquire) {
            self.rtps.wake(&waker);
            // The view is checked first, because everything delivered before it is then in the
            // queue.
            let Some(is_active) = self.is_active() else { break };
            self.hear()?;
            self.rtps.mark()?;
            if !is_active || self.pass_on()? == 0 {
                std::thread::park_timeout(REST);
            }
        }
        drop(self.reader);
        // Other gateways count the samples written on RTPS as passed on, and do not write them
        // again.
        self.rtps.settle(SETTLE_MAX);
        Ok(())
    }

    /// Returns whether this gateway is the first one in the view; `None` once it is not a member.
    fn is_active(&self) -> Option<bool> {
        let status = self.status.status()?;
        let is_member = |node: &u32| status.members.contains(node);
        is_member(&self.own).then(|| {
            self.gateways.iter().find(|node| is_member(node)).is_none_or(|first| *first == self.own)
        })
    }

    fn hear(&mut self) -> Result<(), DdsError> {
        while let Some(ordinal) = self.rtps.take_mark()? {
            self.ledger.has_left(ordinal);
        }
        while let Some(heard) = self.rtps.take()? {
            match heard {
                Heard::Sample(sample) if sample.cdr.len() > self.sample_max => {
                    let (bytes, limit) = (sample.cdr.len(), self.sample_max);
                    self.tally.leave_out(1, &DdsError::TooLarge { bytes, limit });
                }
                Heard::Sample(sample) => self.ledger.came_from_rtps(sample),
                Heard::LeftOut(why) => self.tally.leave_out(1, &why),
            }
        }
        while let Ok(sample) = self.ordered.try_recv() {
            self.ledger.came_in_order(sample);
        }
        match self.ledger.take_dropped() {
            0 => {}
            dropped => self.tally.leave_out(dropped, &"it was not passed on in time"),
        }
        Ok(())
    }

    /// Forwards the waiting samples, and returns their number.
    fn pass_on(&mut self) -> Result<usize, DdsError> {
        for count in 0..DEEDS_MAX {
            let Some(deed) = self.ledger.next() else { return Ok(count) };
            let (is_done, counter) = match &deed {
                Deed::Leave(sample) => (self.rtps.write(sample)?, &self.tally.went_out),
                Deed::Enter(sample) => (self.writer.enter(sample)?, &self.tally.entered),
            };
            if !is_done {
                self.ledger.take_back(deed);
                return Ok(count);
            }
            counter.fetch_add(1, Ordering::Relaxed);
        }
        Ok(DEEDS_MAX)
    }
}

impl DataWriter<Octets> {
    /// Writes a sample from RTPS in the group. Returns `false` if there is no room yet, for example
    /// while the view changes.
    fn enter(&mut self, sample: &FromRtps) -> Result<bool, DdsError> {
        let source = sample.source.unwrap_or_else(Timestamp::now);
        let written = self.write_cdr(
            &sample.cdr,
            Encoding::CDR_LE,
            InstanceHandle::KEYLESS,
            source,
            Some(sample.origin),
        );
        match written {
            Ok(()) => Ok(true),
            Err(DdsError::Timeout(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
