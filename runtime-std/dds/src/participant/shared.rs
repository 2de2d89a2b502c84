//! The state that the entities of a participant share.
//!
//! # Invariants
//! - Locks are taken in this order: discovery or a topic, then the state of one reader or writer.
//!   Two topics are never locked at once. Nothing is sent while a lock is held. The lock of the
//!   topics' directory may be taken while holding any of them, but no lock is taken while it is
//!   held.
//! - Code that may call a listener is marked by [`upcall`]. Inside a listener, calls that wait or
//!   lock a topic are refused.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::discovery::Discovery;
use super::facts::DomainFacts;
use super::handles::{
    ParticipantId, PublicationData, PublicationHandle, SubscriptionData, SubscriptionHandle,
};
use super::life::ParticipantLife;
use super::timers::Alarm;
use super::topics::Topics;
use super::upcall::{is_in_listener, upcall};
use super::voice::Voice;
use crate::domain::Level;
use crate::qos::Bounds;
use crate::reader::ReaderCore;
use crate::sync::{Mutex, lock};
use crate::time::Now;
use crate::topic::TopicState;
use crate::wire::{Kind, ReaderAnnouncement, Word};
use crate::writer::{Outlet, WriterCore};
use tramontane::{ReservedSubgroups, Sender};

/// Time limit for an entity to announce its end.
const FAREWELL: Duration = Duration::from_millis(500);

/// Time limit for an entity to announce itself.
pub(super) const ANNOUNCE: Duration = Duration::from_secs(5);

/// Time for which the keeper of the places waits for room, and after which it retries.
const SAY_AGAIN: Duration = Duration::from_millis(50);

/// The state that the entities of a participant share.
pub(crate) struct ParticipantState {
    pub(super) facts: DomainFacts,
    pub(super) own: ParticipantId,
    /// The topics by index: the declared topics, then the places.
    pub(super) topics: Vec<Mutex<TopicState>>,
    pub(super) known: Topics,
    /// The topics that an external participant follows: their indices and generations.
    pub(super) followed: Mutex<BTreeSet<(usize, u64)>>,
    /// The handles for keeping the places, once this participant is a member.
    pub(super) keeping: OnceLock<(ReservedSubgroups, Sender)>,
    pub(super) discovery: Mutex<Discovery>,
    pub(super) alarm: Alarm,
    pub(super) life: ParticipantLife,
    next_writer: AtomicU32,
    next_reader: AtomicU32,
}

impl ParticipantState {
    pub(super) fn new(facts: DomainFacts, own: ParticipantId) -> Self {
        let declared = facts.topics.iter().map(|topic| TopicState::new(topic.store()));
        let states = declared.chain(facts.places.iter().map(|_| TopicState::new(None)));
        Self {
            topics: states.map(Mutex::new).collect(),
            known: Topics::new(facts.topics.clone(), facts.places.clone()),
            followed: Mutex::default(),
            keeping: OnceLock::new(),
            facts,
            own,
            discovery: Mutex::default(),
            alarm: Alarm::default(),
            life: ParticipantLife::default(),
            next_writer: AtomicU32::new(0),
            next_reader: AtomicU32::new(0),
        }
    }

    /// Returns a handle for the next writer.
    pub(super) fn next_publication(&self) -> PublicationHandle {
        let writer = self.next_writer.fetch_add(1, Ordering::Relaxed);
        PublicationHandle { participant: self.own, writer }
    }

    /// Returns a handle for the next reader.
    pub(super) fn next_subscription(&self) -> SubscriptionHandle {
        let reader = self.next_reader.fetch_add(1, Ordering::Relaxed);
        SubscriptionHandle { participant: self.own, reader }
    }

    /// Calls `body` with a topic. Listeners may be called in the process.
    pub(crate) fn with_topic<R>(
        &self,
        topic: usize,
        body: impl FnOnce(&mut TopicState) -> R,
    ) -> Option<R> {
        let topic = self.topics.get(topic)?;
        Some(upcall(|| body(&mut lock(topic))))
    }

    /// Returns the bounds against which a reader's policies on a topic of this level are checked.
    pub(super) fn reader_bounds(&self, level: Level) -> Bounds {
        Bounds { level, failure_timeout: self.facts.failure_timeout() }
    }

    /// Returns the bounds for a writer's policies. For an external participant, they include the
    /// lease, after which the group notices the loss of a writer.
    pub(super) fn writer_bounds(&self, level: Level) -> Bounds {
        let failure_timeout = match self.own {
            ParticipantId::Node(_) => self.facts.failure_timeout(),
            ParticipantId::Client(_) => Some(self.facts.client_lease()),
        };
        Bounds { level, failure_timeout }
    }

    /// Returns the time that delivery may wait for a reader that keeps all samples. It is short
    /// enough that other members do not mistake this one for dead. An external participant delays
    /// no other.
    pub(super) fn patience_max(&self) -> Duration {
        match self.own {
            ParticipantId::Node(_) => {
                self.facts.failure_timeout().map_or(Duration::MAX, |timeout| timeout / 4)
            }
            ParticipantId::Client(_) => Duration::MAX,
        }
    }

    /// Removes the participants that are gone from a topic's state.
    pub(super) fn gone_in_topic(&self, topic: usize, is_gone: impl Fn(ParticipantId) -> bool) {
        self.with_topic(topic, |state| state.participants_gone(is_gone, Now::read()));
    }

    /// Removes the participants that are gone from the discovery state.
    pub(super) fn gone_in_discovery(&self, is_gone: impl Fn(ParticipantId) -> bool) {
        upcall(|| lock(&self.discovery).participants_gone(is_gone));
    }

    /// Handles what has become due, and returns when to call again.
    pub(super) fn tick(&self, now: Now) -> Option<Duration> {
        let mut next: Option<Duration> = None;
        let mut sooner = |due: Option<Duration>| {
            next = next.into_iter().chain(due).min();
        };
        sooner(self.keep_places().then_some(now.elapsed + SAY_AGAIN));
        for topic in 0..self.topics.len() {
            let due = self.with_topic(topic, |state| {
                state.tick(now);
                state.next_due(now.elapsed)
            });
            sooner(due.flatten());
        }
        let writers = lock(&self.discovery).writers();
        for writer in &writers {
            writer.heed(&writers);
            upcall(|| writer.tick(now.elapsed));
            sooner(writer.next_due(now.elapsed));
        }
        next
    }
}

impl ParticipantState {
    /// Keeps the places of topics created at run time, if that is this participant's task. Returns
    /// `true` if a message could not be sent, so that the call must be repeated.
    fn keep_places(&self) -> bool {
        let Some((reserved, discovery)) = self.keeping.get() else { return false };
        let words = self.known.lock().keep(reserved);
        let mut has_more = false;
        for word in words {
            let said = word.encode().map(|bytes| discovery.clone().send(&bytes, SAY_AGAIN));
            match said {
                Ok(Ok(_)) => self.known.lock().said(&word),
                _ => has_more = true,
            }
        }
        has_more
    }
}

/// The link between a reader and its participant. Dropping it deletes the reader.
pub(crate) struct Attachment {
    pub(super) shared: Arc<ParticipantState>,
    pub(super) topic: usize,
    pub(super) generation: u64,
    pub(super) reader: Arc<ReaderCore>,
    pub(super) discovery: Voice,
}

impl Attachment {
    pub(crate) fn matched_publications(&self) -> Vec<PublicationData> {
        let matched = |state: &mut TopicState| state.matched_publications(self.reader.handle);
        self.shared.with_topic(self.topic, matched).unwrap_or_default()
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if is_in_listener() {
            tracing::warn!(
                "a reader that is dropped in a listener continues to exist until its participant \
                 ends"
            );
            return;
        }
        self.reader.delete();
        drop(self.shared.with_topic(self.topic, |state| state.detach(self.reader.handle)));
        let topic = u32::try_from(self.topic).unwrap_or(u32::MAX);
        let (generation, reader) = (self.generation, self.reader.handle.reader);
        let gone = Word::Reader(ReaderAnnouncement { topic, generation, reader, qos: None });
        // A participant that has ended makes no announcements.
        let _ = gone.encode().map(|bytes| self.discovery.say(&bytes, FAREWELL));
    }
}

/// The link between a writer and its participant.
pub(crate) struct WriterAttachment {
    pub(super) shared: Arc<ParticipantState>,
    pub(super) level: Level,
}

impl WriterAttachment {
    pub(crate) const fn level(&self) -> Level {
        self.level
    }

    pub(crate) fn matched_subscriptions(&self, writer: &WriterCore) -> Vec<SubscriptionData> {
        lock(&self.shared.discovery).matched(writer)
    }

    /// Announces the writer's end to the others, and removes the writer.
    pub(crate) fn delete(&self, outlet: &mut Outlet) {
        // A participant that has ended makes no announcements.
        let _ = outlet.say(Kind::Gone, &[], FAREWELL);
        lock(&self.shared.discovery).remove_writer(outlet.core().handle);
    }
}
