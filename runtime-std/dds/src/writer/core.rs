//! The type-independent part of a writer, shared by the application, the delivering thread and the
//! timers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::listener::{DataWriterListener, WriterEvent};
use crate::cdr::InstanceHandle;
use crate::participant::PublicationHandle;
use crate::qos::{LivelinessKind, PolicyId, WriterQos};
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessLostStatus, MatchedStatus, StatusMask,
};
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::time::{INFINITE, Now, missed};
use crate::waitset::Bells;

/// The statuses of a writer.
#[derive(Debug, Default)]
pub(super) struct Statuses {
    pub(super) changed: StatusMask,
    pub(super) matched: MatchedStatus,
    pub(super) incompatible: IncompatibleQosStatus,
    pub(super) deadline: DeadlineMissedStatus,
    pub(super) liveliness: LivelinessLostStatus,
}

/// The times at which something is due at a writer.
#[derive(Debug, Default)]
struct Dues {
    /// The time by which each instance's next sample is due.
    samples: BTreeMap<InstanceHandle, Duration>,
    /// The time of the last liveliness assertion.
    sign: Duration,
    /// Whether the lease has passed without an assertion, and none has come since.
    is_silent: bool,
}

/// The part of a writer that its threads share.
pub(crate) struct WriterCore {
    pub(crate) handle: PublicationHandle,
    /// The topic's index and generation.
    pub(crate) topic: usize,
    pub(crate) generation: u64,
    pub(crate) qos: WriterQos,
    /// Whether the topic has been deleted.
    is_stopped: AtomicBool,
    pub(super) statuses: Mutex<Statuses>,
    listener: Mutex<Option<Box<dyn DataWriterListener>>>,
    dues: Mutex<Dues>,
    pub(super) bells: Bells,
}

impl WriterCore {
    pub(crate) fn new(
        handle: PublicationHandle,
        (topic, generation): (usize, u64),
        qos: WriterQos,
        now: Now,
    ) -> Self {
        let core = Self {
            handle,
            topic,
            generation,
            qos,
            is_stopped: AtomicBool::new(false),
            statuses: Mutex::default(),
            listener: Mutex::default(),
            dues: Mutex::default(),
            bells: Bells::default(),
        };
        core.gave_sign(now.elapsed);
        core
    }

    /// Stops the writer, because the topic has been deleted and later messages would belong to the
    /// next topic in the place.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Returns whether the topic has been deleted.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    pub(crate) fn set_listener(&self, listener: Option<Box<dyn DataWriterListener>>) {
        *lock(&self.listener) = listener;
    }

    /// Returns whether anything can become due at the writer, so that its writes must be recorded.
    #[inline]
    pub(super) fn has_dues(&self) -> bool {
        self.qos.deadline.period != INFINITE || self.is_manual()
    }

    /// Returns the lease that the application has to keep.
    fn lease(&self) -> Option<Duration> {
        let lease = self.qos.liveliness.lease_duration;
        (self.is_manual() && lease != INFINITE).then_some(lease)
    }

    fn is_manual(&self) -> bool {
        self.qos.liveliness.kind != LivelinessKind::Automatic
    }

    /// Records that a sample of this instance has been written.
    pub(super) fn wrote(&self, instance: InstanceHandle, now: Duration) {
        if self.qos.deadline.period != INFINITE {
            let due = now.saturating_add(self.qos.deadline.period);
            lock(&self.dues).samples.insert(instance, due);
        }
        self.gave_sign(now);
    }

    /// Records that the writer no longer writes this instance.
    pub(super) fn ended(&self, instance: InstanceHandle) {
        lock(&self.dues).samples.remove(&instance);
    }

    /// Records an assertion of liveliness.
    pub(crate) fn gave_sign(&self, now: Duration) {
        if self.is_manual() {
            let mut dues = lock(&self.dues);
            (dues.sign, dues.is_silent) = (now, false);
        }
    }

    /// Adopts the latest liveliness assertion of the writers that speak for this one: those of its
    /// participant in the topic, if the participant asserts its liveliness.
    pub(crate) fn heed(&self, writers: &[Arc<Self>]) {
        let kind = LivelinessKind::ManualByParticipant;
        if self.qos.liveliness.kind != kind {
            return;
        }
        let speaks = |other: &&Arc<Self>| {
            other.qos.liveliness.kind == kind
                && (other.topic, other.generation) == (self.topic, self.generation)
        };
        let signs = writers.iter().filter(speaks).map(|other| lock(&other.dues).sign);
        let last = signs.max().unwrap_or_default();
        if last > lock(&self.dues).sign {
            self.gave_sign(last);
        }
    }

    fn changes(&self, kind: StatusMask, change: impl FnOnce(&mut Statuses) -> WriterEvent) {
        let event = {
            let mut statuses = lock(&self.statuses);
            statuses.changed |= kind;
            change(&mut statuses)
        };
        self.bells.ring();
        if let Some(listener) = &mut *lock(&self.listener) {
            event.tell(&mut **listener);
        }
    }

    pub(crate) fn matched(&self) {
        self.changes(StatusMask::PUBLICATION_MATCHED, |statuses| {
            statuses.matched.add();
            WriterEvent::Matched(statuses.matched)
        });
    }

    pub(crate) fn unmatched(&self) {
        self.changes(StatusMask::PUBLICATION_MATCHED, |statuses| {
            statuses.matched.remove();
            WriterEvent::Matched(statuses.matched)
        });
    }

    pub(crate) fn incompatible(&self, differing: &[PolicyId]) {
        self.changes(StatusMask::OFFERED_INCOMPATIBLE_QOS, |statuses| {
            statuses.incompatible.add(differing);
            WriterEvent::IncompatibleQos(statuses.incompatible.clone())
        });
    }

    /// Handles what has become due: missing samples and assertions.
    pub(crate) fn tick(&self, now: Duration) {
        let mut is_silent = false;
        let late: Vec<_> = {
            let mut dues = lock(&self.dues);
            if let Some(lease) = self.lease() {
                let is_late = dues.sign.saturating_add(lease) <= now;
                is_silent = is_late && !std::mem::replace(&mut dues.is_silent, is_late);
            }
            let period = self.qos.deadline.period;
            let late = |(instance, due): (&InstanceHandle, &mut Duration)| {
                Some((*instance, missed(due, period, now)?))
            };
            dues.samples.iter_mut().filter_map(late).collect()
        };
        for (instance, count) in late {
            self.changes(StatusMask::OFFERED_DEADLINE_MISSED, |statuses| {
                statuses.deadline.add(instance, count);
                WriterEvent::DeadlineMissed(statuses.deadline)
            });
        }
        if is_silent {
            self.changes(StatusMask::LIVELINESS_LOST, |statuses| {
                statuses.liveliness.add();
                WriterEvent::LivelinessLost(statuses.liveliness)
            });
        }
    }

    /// Returns when something may become due; `None` if nothing ever will.
    pub(crate) fn next_due(&self, now: Duration) -> Option<Duration> {
        if self.qos.deadline.period == INFINITE && self.lease().is_none() {
            return None;
        }
        let dues = lock(&self.dues);
        let shortest = self.qos.deadline.period.min(self.lease().unwrap_or(INFINITE));
        let latest = now.saturating_add(shortest);
        let sign = self.lease().filter(|_| !dues.is_silent);
        let sign = sign.map(|lease| dues.sign.saturating_add(lease));
        dues.samples.values().copied().chain(sign).chain([latest]).min()
    }
}

impl std::fmt::Debug for WriterCore {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("WriterCore").field("handle", &self.handle).finish_non_exhaustive()
    }
}
