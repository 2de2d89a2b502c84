//! The thread that mirrors one topic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tramontane::SharedStatus;

use super::ledger::{Deed, FromGroup, FromRtps, Ledger};
use super::rtps::{Heard, RtpsTopic};
use crate::cdr::{Encoding, InstanceHandle, Octets};
use crate::error::DdsError;
use crate::reader::{DataReader, DataReaderListener, Disposition, Lent};
use crate::time::Timestamp;
use crate::writer::DataWriter;

/// The longest rest: it looks whether the view has changed.
const REST: Duration = Duration::from_millis(5);

/// Samples that are passed on between two looks at the view.
const DEEDS_MAX: usize = 256;

/// One topic between the group and RTPS.
pub(super) struct Mirror {
    pub(super) own: u32,
    pub(super) gateways: Vec<u32>,
    pub(super) status: SharedStatus,
    pub(super) returns: bool,
    pub(super) rtps: RtpsTopic,
    pub(super) writer: DataWriter<Octets>,
    pub(super) reader: DataReader<Octets>,
    pub(super) ordered: Receiver<FromGroup>,
    pub(super) ends: Arc<AtomicBool>,
}

/// A listener that hands the order on, and where it goes.
pub(super) fn ordered() -> (Ordered, Receiver<FromGroup>) {
    let (sender, receiver) = channel();
    (Ordered(sender), receiver)
}

/// Hands the order on.
pub(super) struct Ordered(Sender<FromGroup>);

impl DataReaderListener<Octets> for Ordered {
    fn on_sample(&mut self, sample: &Lent<'_, Octets>) -> Disposition {
        let info = sample.info();
        if info.valid_data && info.encoding == Encoding::CDR_LE {
            // A mirror that has ended wants nothing.
            let _ = self.0.send(FromGroup {
                ordinal: info.ordinal,
                origin: info.origin,
                source: info.source_timestamp,
                cdr: sample.cdr().to_vec(),
            });
        }
        Disposition::Taken
    }
}

/// Wakes the thread when something comes from RTPS.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Mirror {
    /// Passes on, until the gateway ends or the participant does.
    pub(super) fn run(mut self) {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut ledger = Ledger::new(self.returns);
        while !self.ends.load(Ordering::Acquire) {
            self.rtps.wake(&waker);
            // The view first: all that was delivered before it is in the queue by then.
            let Some(is_active) = self.is_active() else { return };
            self.hear(&mut ledger);
            let mut is_busy = false;
            if is_active {
                match self.pass_on(&mut ledger) {
                    Ok(count) => is_busy = count > 0,
                    Err(error) => {
                        tracing::error!(%error, "the gateway ends");
                        return;
                    }
                }
            }
            if !is_busy {
                std::thread::park_timeout(REST);
            }
        }
        drop(self.reader);
    }

    /// Whether this gateway is the first of them in the view; nothing once it is in none.
    fn is_active(&self) -> Option<bool> {
        let status = self.status.status()?;
        let is_member = |node: &u32| status.members.contains(node);
        is_member(&self.own).then(|| {
            self.gateways.iter().find(|node| is_member(node)).is_none_or(|first| *first == self.own)
        })
    }

    fn hear(&self, ledger: &mut Ledger) {
        while let Some(heard) = self.rtps.take() {
            match heard {
                Heard::Sample(sample) => ledger.came_from_rtps(sample),
                Heard::Left(ordinal) => ledger.has_left(ordinal),
            }
        }
        while let Ok(sample) = self.ordered.try_recv() {
            ledger.came_in_order(sample);
        }
        let dropped = ledger.take_dropped();
        if dropped > 0 {
            tracing::warn!(dropped, "samples were not passed on in time, and are dropped");
        }
    }

    fn pass_on(&mut self, ledger: &mut Ledger) -> Result<usize, DdsError> {
        for count in 0..DEEDS_MAX {
            match ledger.next() {
                None => return Ok(count),
                Some(Deed::Leave(sample)) => self.rtps.write(&sample)?,
                Some(Deed::Enter(sample)) => self.enter(&sample)?,
            }
        }
        Ok(DEEDS_MAX)
    }

    /// Writes a sample in the group; a group that is changing its view is waited for.
    fn enter(&mut self, sample: &FromRtps) -> Result<(), DdsError> {
        let source = sample.source.unwrap_or_else(Timestamp::now);
        let started = Instant::now();
        loop {
            let written = self.writer.write_cdr(
                &sample.cdr,
                Encoding::CDR_LE,
                InstanceHandle::KEYLESS,
                source,
                Some(sample.origin),
            );
            match written {
                Err(DdsError::Timeout(_)) if !self.ends.load(Ordering::Acquire) => {
                    tracing::debug!(waited = ?started.elapsed(), "the group has no room");
                }
                outcome => return outcome,
            }
        }
    }
}
