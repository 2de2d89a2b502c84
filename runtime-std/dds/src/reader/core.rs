//! The type-independent part of a reader, shared by the delivering thread and the application's
//! threads.
//!
//! # Invariants
//! - The cache's lock is not held while a listener is called.
//! - Only the delivering thread adds samples. Before that, the thread that creates the reader adds
//!   them.

use std::sync::Arc;
use std::time::Duration;

use super::cache::{Admission, Arrival, ReaderCache, Selected};
use super::event::{AnyListener, Disposition, ReaderEvent};
use super::info::SampleInfo;
use super::selection::Selection;
use crate::cdr::InstanceHandle;
use crate::participant::{PublicationHandle, SubscriptionHandle};
use crate::qos::{History, PolicyId, ReaderQos, ReliabilityKind};
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    RejectedReason, SampleLostStatus, SampleRejectedStatus, StatusMask,
};
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, lock, wait_while};
use crate::time::{INFINITE, Now};
use crate::topic::IncomingValue;
use crate::waitset::Bells;
use crate::wire::Kind;

/// The statuses of a reader.
#[derive(Debug, Default)]
pub(super) struct Statuses {
    pub(super) changed: StatusMask,
    pub(super) lost: SampleLostStatus,
    pub(super) rejected: SampleRejectedStatus,
    pub(super) deadline: DeadlineMissedStatus,
    pub(super) incompatible: IncompatibleQosStatus,
    pub(super) matched: MatchedStatus,
    pub(super) liveliness: LivelinessChangedStatus,
}

/// The part of a reader that its threads share.
pub(crate) struct ReaderCore {
    pub(crate) handle: SubscriptionHandle,
    pub(crate) qos: ReaderQos,
    /// Maximum time for which delivery waits for room.
    patience: Duration,
    cache: Mutex<ReaderCache>,
    room: Condvar,
    pub(super) statuses: Mutex<Statuses>,
    listener: Mutex<Option<Box<dyn AnyListener>>>,
    listens: AtomicBool,
    pub(super) bells: Bells,
    /// Whether something has been kept since the last [`ReaderCore::flush`].
    has_news: AtomicBool,
    /// Whether the topic has been deleted and all its samples have been delivered.
    is_over: AtomicBool,
    /// Whether the application has dropped the reader.
    is_deleted: AtomicBool,
}

impl ReaderCore {
    /// Creates a reader. If it keeps all samples, delivery waits for room in it, for at most
    /// `patience_max`.
    pub(crate) fn new(handle: SubscriptionHandle, qos: ReaderQos, patience_max: Duration) -> Self {
        let waits =
            qos.history == History::KeepAll && qos.reliability.kind == ReliabilityKind::Reliable;
        let patience = if waits {
            qos.reliability.max_blocking_time.min(patience_max)
        } else {
            Duration::ZERO
        };
        Self {
            handle,
            patience,
            cache: Mutex::new(ReaderCache::new(qos.clone())),
            qos,
            room: Condvar::new(),
            statuses: Mutex::default(),
            listener: Mutex::default(),
            listens: AtomicBool::new(false),
            bells: Bells::default(),
            has_news: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_deleted: AtomicBool::new(false),
        }
    }

    /// Records that the topic has been deleted, so nothing more will come.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.bells.ring();
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Records that the reader has been deleted, so that a thread that still holds it does not add
    /// it to a topic.
    pub(crate) fn delete(&self) {
        self.is_deleted.store(true, Ordering::Release);
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::Acquire)
    }

    pub(crate) fn set_listener(&self, listener: Option<Box<dyn AnyListener>>) {
        let listens = listener.is_some();
        *lock(&self.listener) = listener;
        self.listens.store(listens, Ordering::Release);
    }

    /// Delivers an arrival: lends it to the listener first, and keeps it if the listener does not
    /// take it.
    pub(crate) fn deliver(&self, arrival: &Arrival, incoming: &mut IncomingValue<'_>, now: Now) {
        let admission = lock(&self.cache).admit(arrival, now);
        let info = match admission {
            Admission::Admitted(info) => info,
            Admission::Ignored => return,
            Admission::Rejected(reason) => return self.rejected(reason, &arrival.info),
        };
        if self.listens.load(Ordering::Acquire)
            && let Some(listener) = &mut *lock(&self.listener)
            && listener.on_sample(&info, incoming.bytes) == Disposition::Taken
        {
            lock(&self.cache).taken_in_place(&info);
            return;
        }
        let payload = (info.valid_data || !incoming.bytes.is_empty()).then(|| incoming.keep());
        let mut cache = lock(&self.cache);
        if info.valid_data && !self.patience.is_zero() {
            // Samples that have expired in the meantime make room.
            let lacks =
                |cache: &mut ReaderCache| cache.lacks_room_at(info.instance_handle, Now::read());
            cache = wait_while(&self.room, cache, self.patience, lacks);
        }
        let kept = cache.keep(info, payload, arrival.expires);
        drop(cache);
        match kept {
            Ok(()) => self.has_news.store(true, Ordering::Relaxed),
            Err(reason) => self.rejected(reason, &info),
        }
    }

    /// Ends a batch of arrivals that were delivered together.
    pub(crate) fn flush(&self) {
        if self.has_news.swap(false, Ordering::Relaxed) {
            lock(&self.statuses).changed |= StatusMask::DATA_AVAILABLE;
            self.tell(&ReaderEvent::Available);
        }
    }

    fn tell(&self, event: &ReaderEvent) {
        self.bells.ring();
        if self.listens.load(Ordering::Acquire)
            && let Some(listener) = &mut *lock(&self.listener)
        {
            listener.on_event(event);
        }
    }

    fn changes<S: Clone>(
        &self,
        kind: StatusMask,
        change: impl FnOnce(&mut Statuses) -> S,
        event: impl FnOnce(S) -> ReaderEvent,
    ) {
        let status = {
            let mut statuses = lock(&self.statuses);
            statuses.changed |= kind;
            change(&mut statuses)
        };
        self.tell(&event(status));
    }

    #[cold]
    fn rejected(&self, reason: RejectedReason, info: &SampleInfo) {
        let change = |statuses: &mut Statuses| {
            statuses.rejected.add(reason, info.instance_handle);
            statuses.rejected
        };
        self.changes(StatusMask::SAMPLE_REJECTED, change, ReaderEvent::Rejected);
    }

    pub(crate) fn lost(&self, count: u64) {
        let change = |statuses: &mut Statuses| {
            statuses.lost.add(count);
            statuses.lost
        };
        self.changes(StatusMask::SAMPLE_LOST, change, ReaderEvent::Lost);
    }

    /// Records that the topic's history, beginning with this number in its order, differs from what
    /// was delivered.
    #[cold]
    pub(crate) fn history_changed(&self, from: u64) {
        let change = |statuses: &mut Statuses| {
            let first = statuses.lost.history_changed_from.map_or(from, |before| before.min(from));
            statuses.lost.history_changed_from = Some(first);
            statuses.lost
        };
        self.changes(StatusMask::SAMPLE_LOST, change, ReaderEvent::Lost);
    }

    #[cfg(test)]
    pub(crate) fn take_lost(&self) -> SampleLostStatus {
        lock(&self.statuses).lost.take()
    }

    #[cfg(test)]
    pub(crate) fn lost_count(&self) -> u64 {
        lock(&self.statuses).lost.total_count
    }

    #[cfg(test)]
    pub(crate) fn incompatible_count(&self) -> u32 {
        lock(&self.statuses).incompatible.total_count
    }

    #[cfg(test)]
    pub(crate) fn matched_count(&self) -> u32 {
        lock(&self.statuses).matched.current_count
    }

    /// Records a new writer whose offer matches.
    pub(crate) fn matched(&self, writer: PublicationHandle, is_alive: bool) {
        let change = |statuses: &mut Statuses| {
            statuses.matched.add();
            statuses.matched
        };
        self.changes(StatusMask::SUBSCRIPTION_MATCHED, change, ReaderEvent::Matched);
        if is_alive {
            self.lives(writer, false);
        }
    }

    pub(crate) fn incompatible(&self, differing: &[PolicyId]) {
        let change = |statuses: &mut Statuses| {
            statuses.incompatible.add(differing);
            statuses.incompatible.clone()
        };
        let event = ReaderEvent::IncompatibleQos;
        self.changes(StatusMask::REQUESTED_INCOMPATIBLE_QOS, change, event);
    }

    /// Records that a matched writer has left all its instances.
    pub(crate) fn unmatched(&self, writer: PublicationHandle, was_alive: bool, now: Now) {
        self.writer_left(writer, now);
        let change = |statuses: &mut Statuses| {
            statuses.liveliness.forget(writer, was_alive);
            statuses.liveliness
        };
        self.changes(StatusMask::LIVELINESS_CHANGED, change, ReaderEvent::Liveliness);
        let change = |statuses: &mut Statuses| {
            statuses.matched.remove();
            statuses.matched
        };
        self.changes(StatusMask::SUBSCRIPTION_MATCHED, change, ReaderEvent::Matched);
    }

    /// Records that a matched writer has missed its lease.
    pub(crate) fn sleeps(&self, writer: PublicationHandle, now: Now) {
        self.writer_left(writer, now);
        let change = |statuses: &mut Statuses| {
            statuses.liveliness.sleeps(writer);
            statuses.liveliness
        };
        self.changes(StatusMask::LIVELINESS_CHANGED, change, ReaderEvent::Liveliness);
    }

    /// Records that a matched writer is alive (again).
    pub(crate) fn lives(&self, writer: PublicationHandle, was_known: bool) {
        let change = |statuses: &mut Statuses| {
            statuses.liveliness.lives(writer, was_known);
            statuses.liveliness
        };
        self.changes(StatusMask::LIVELINESS_CHANGED, change, ReaderEvent::Liveliness);
    }

    fn writer_left(&self, writer: PublicationHandle, now: Now) {
        if lock(&self.cache).writer_left(writer, now) {
            self.has_news.store(true, Ordering::Relaxed);
            self.flush();
        }
    }

    /// Adopts the state of a kept instance: its writers, and whether it has ended.
    pub(crate) fn adopt(
        &self,
        instance: InstanceHandle,
        writers: &[PublicationHandle],
        ended: Option<Kind>,
        now: Now,
    ) {
        if lock(&self.cache).adopt(instance, writers, ended, now) {
            self.has_news.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn select(&self, selection: &Selection, takes: bool) -> Vec<Selected> {
        // The status is cleared before the check, because a later arrival sets it again.
        lock(&self.statuses).changed.remove(StatusMask::DATA_AVAILABLE);
        let selected = lock(&self.cache).select(selection, takes, Now::read());
        if takes {
            self.room.notify_all();
        }
        selected
    }

    pub(crate) fn has(&self, selection: &Selection) -> bool {
        lock(&self.cache).has(selection, Now::read())
    }

    /// Handles what has become due: missed deadlines, and instances to forget.
    pub(crate) fn tick(&self, now: Now) {
        let missed = {
            let mut cache = lock(&self.cache);
            cache.purge(now.elapsed);
            cache.missed_deadlines(now.elapsed)
        };
        for (instance, count) in missed {
            let change = |statuses: &mut Statuses| {
                statuses.deadline.add(instance, count);
                statuses.deadline
            };
            let event = ReaderEvent::DeadlineMissed;
            self.changes(StatusMask::REQUESTED_DEADLINE_MISSED, change, event);
        }
    }

    /// Returns when something may become due; `None` if nothing ever will.
    pub(crate) fn next_due(&self, now: Duration) -> Option<Duration> {
        let cache = lock(&self.cache);
        let qos = cache.qos();
        let lifecycle = &qos.reader_data_lifecycle;
        let shortest = qos
            .deadline
            .period
            .min(lifecycle.autopurge_disposed_samples_delay)
            .min(lifecycle.autopurge_nowriter_samples_delay);
        if shortest == INFINITE {
            return None;
        }
        // A new instance becomes due one whole period from now at the earliest.
        let latest = now.saturating_add(shortest);
        Some(cache.next_due().map_or(latest, |due| due.min(latest)))
    }
}

impl std::fmt::Debug for ReaderCore {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ReaderCore").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// A shared reader, as conditions hold it.
pub(crate) type SharedReader = Arc<ReaderCore>;

#[cfg(all(test, tramontane_interleave))]
mod interleavings;
