//! What the entities of a participant share.
//!
//! # Invariants
//! - Locks are taken in this order: discovery or a topic, then what belongs to one reader or
//!   writer; never two topics at once. Nothing is sent while one is held.
//! - Whoever may call a listener says so ([`upcall`]); calls that wait, or lock a topic, are
//!   refused to a thread that is in one.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::discovery::Discovery;
use super::handles::{PublicationData, PublicationHandle, SubscriptionData, SubscriptionHandle};
use super::timers::Alarm;
use crate::domain::{Domain, Level};
use crate::error::DdsError;
use crate::qos::Bounds;
use crate::time::Now;
use crate::topic::{Keep, TopicState, TopicStore};
use crate::waitset::lock;
use crate::wire::{Kind, ReaderAnnouncement};
use crate::writer::{Outlet, WriterCore};
use tramontane::{Membership, Sender};

/// How long an entity tells the others that it is gone, at most.
const FAREWELL: Duration = Duration::from_millis(500);

/// How long it may wait to tell them that it is there.
pub(super) const ANNOUNCE: Duration = Duration::from_secs(5);

/// What the entities of a participant share.
pub(crate) struct Shared {
    pub(super) domain: Domain,
    pub(super) node: u32,
    pub(super) topics: Vec<Mutex<TopicState>>,
    pub(super) discovery: Mutex<Discovery>,
    pub(super) alarm: Alarm,
    next_writer: AtomicU32,
    next_reader: AtomicU32,
}

thread_local! {
    static IN_LISTENER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread may be in a listener.
pub(crate) fn is_in_listener() -> bool {
    IN_LISTENER.get()
}

/// Refuses a call from a listener.
pub(crate) fn check_not_in_listener(call: &'static str) -> Result<(), DdsError> {
    if is_in_listener() { Err(DdsError::IllegalOperation(call)) } else { Ok(()) }
}

/// Does something in which listeners may be called.
pub(super) fn upcall<R>(body: impl FnOnce() -> R) -> R {
    /// Also where a listener panics: the thread may be the application's.
    struct Leave(bool);
    impl Drop for Leave {
        fn drop(&mut self) {
            IN_LISTENER.set(self.0);
        }
    }
    let _leave = Leave(IN_LISTENER.replace(true));
    body()
}

impl Shared {
    pub(super) fn new(domain: Domain, node: u32) -> Self {
        let store = |topic: &crate::domain::TopicDescription| {
            let index = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
            let keep =
                Keep { depth: topic.keep_depth.map(index), samples: topic.keep_samples.map(index) };
            topic.level.keeps().then(|| TopicStore::new(keep))
        };
        let topics = domain.topics().iter().map(|topic| Mutex::new(TopicState::new(store(topic))));
        Self {
            topics: topics.collect(),
            domain,
            node,
            discovery: Mutex::default(),
            alarm: Alarm::default(),
            next_writer: AtomicU32::new(0),
            next_reader: AtomicU32::new(0),
        }
    }

    /// The next writer's name.
    pub(super) fn next_publication(&self) -> PublicationHandle {
        let writer = self.next_writer.fetch_add(1, Ordering::Relaxed);
        PublicationHandle { participant: self.node, writer }
    }

    /// The next reader's name.
    pub(super) fn next_subscription(&self) -> SubscriptionHandle {
        let reader = self.next_reader.fetch_add(1, Ordering::Relaxed);
        SubscriptionHandle { participant: self.node, reader }
    }

    /// Does something with a topic, in which listeners may be called.
    pub(crate) fn with_topic<R>(
        &self,
        topic: usize,
        body: impl FnOnce(&mut TopicState) -> R,
    ) -> Option<R> {
        let topic = self.topics.get(topic)?;
        Some(upcall(|| body(&mut lock(topic))))
    }

    pub(super) fn level(&self, topic: usize) -> Level {
        self.domain.topics().get(topic).map(|topic| topic.level).unwrap_or_default()
    }

    /// What policies are checked against.
    pub(super) fn bounds(&self, topic: usize) -> Bounds {
        Bounds { level: self.level(topic), failure_timeout: self.failure_timeout() }
    }

    fn failure_timeout(&self) -> Option<Duration> {
        let group = self.domain.group();
        (group.membership == Membership::Changing)
            .then(|| Duration::from_millis(group.failure_timeout_ms))
    }

    /// How long delivery may wait for a reader that keeps all: others must not take this member for
    /// dead.
    pub(super) fn patience_max(&self) -> Duration {
        self.failure_timeout().map_or(Duration::MAX, |timeout| timeout / 4)
    }

    /// What has become due. Gives when something may be next.
    pub(super) fn tick(&self, now: Now) -> Option<Duration> {
        let mut next: Option<Duration> = None;
        let mut sooner = |due: Option<Duration>| {
            next = next.into_iter().chain(due).min();
        };
        for topic in 0..self.topics.len() {
            let due = self.with_topic(topic, |state| {
                state.tick(now);
                state.next_due(now.elapsed)
            });
            sooner(due.flatten());
        }
        let writers = lock(&self.discovery).writers();
        for writer in writers {
            upcall(|| writer.tick(now.elapsed));
            sooner(writer.next_due(now.elapsed));
        }
        next
    }
}

/// What ties a reader to its participant. Dropping it deletes the reader.
pub(crate) struct Attachment {
    pub(super) shared: Arc<Shared>,
    pub(super) topic: usize,
    pub(super) reader: SubscriptionHandle,
    pub(super) discovery: Sender,
}

impl Attachment {
    pub(crate) fn matched_publications(&self) -> Vec<PublicationData> {
        let matched = |state: &mut TopicState| state.matched_publications(self.reader);
        self.shared.with_topic(self.topic, matched).unwrap_or_default()
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if is_in_listener() {
            tracing::warn!(
                "a reader that is dropped in a listener lives on until its participant ends"
            );
            return;
        }
        drop(self.shared.with_topic(self.topic, |state| state.detach(self.reader)));
        let topic = u32::try_from(self.topic).unwrap_or(u32::MAX);
        let gone = ReaderAnnouncement { topic, reader: self.reader.reader, qos: None };
        // A participant that has ended tells nobody.
        let _ = gone.encode().map(|bytes| self.discovery.send(&bytes, FAREWELL));
    }
}

/// What ties a writer to its participant.
pub(crate) struct WriterAttachment {
    pub(super) shared: Arc<Shared>,
    pub(super) topic: usize,
}

impl WriterAttachment {
    pub(crate) fn level(&self) -> Level {
        self.shared.level(self.topic)
    }

    pub(crate) fn matched_subscriptions(&self, writer: &WriterCore) -> Vec<SubscriptionData> {
        lock(&self.shared.discovery).matched(writer)
    }

    /// Tells the others that the writer is gone, and forgets it.
    pub(crate) fn delete(&self, outlet: &mut Outlet) {
        // A participant that has ended tells nobody.
        let _ = outlet.say(Kind::Gone, &[], FAREWELL);
        lock(&self.shared.discovery).remove_writer(outlet.core().handle);
    }
}
