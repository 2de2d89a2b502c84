//! One member's state of a topic, according to the messages and view changes so far.
//!
//! # Invariants
//! - At the ordered levels `ordinal`, the writers with their numbers, and the store depend only on
//!   the topic's order, so they are the same on all members at the same position in that order.
//! - A new reader is fed from the store, and then receives every later sample. No sample is missed
//!   or duplicated, because both happen under the topic's lock.

use std::sync::Arc;
use std::time::Duration;

use tramontane::Message;

use super::payload::{IncomingValue, Payloads};
use super::store::{StoredSample, TopicStore};
use super::tail::Tail;
use super::writers::{KnownWriter, KnownWriters};
use crate::cdr::InstanceHandle;
use crate::domain::Level;
use crate::participant::{
    OUTSIDE_MAX, ParticipantId, PublicationData, PublicationHandle, SubscriptionHandle,
};
use crate::qos::{Durability, WriterQos, incompatible};
use crate::reader::{Arrival, InstanceStates, ReaderCore, SampleInfo};
use crate::time::Now;
use crate::wire::{Header, Kind, decode_writer};

/// One of this participant's readers, with its matching writers.
#[derive(Debug)]
struct Attached {
    core: Arc<ReaderCore>,
    matched: Vec<PublicationHandle>,
}

/// One member's state of a topic.
#[derive(Debug, Default)]
pub(crate) struct TopicState {
    /// The generation of the topic that has the place; 0 if the topic is declared.
    pub(super) generation: u64,
    /// The view in which the topic was created: messages of that view and earlier ones belong to
    /// the place's previous topic. Zero if the topic is declared.
    created_in: u64,
    /// Whether the topic has been deleted, so that no more of its messages will come.
    is_over: bool,
    /// Number of the topic's messages so far.
    pub(super) ordinal: u64,
    pub(super) writers: KnownWriters,
    /// The kept samples; `None` at the levels that keep none.
    pub(super) store: Option<TopicStore>,
    readers: Vec<Attached>,
    pub(super) payloads: Payloads,
    /// Whether something may be due earlier than before.
    timing_changed: bool,
    /// The level that unknown writers are assumed to offer, if the topic is read from a position in
    /// the log.
    pub(super) assumed: Option<Level>,
    /// The topic's last messages, kept while readers catch up from the log.
    pub(super) tail: Option<Tail>,
}

impl TopicState {
    pub(crate) fn new(store: Option<TopicStore>) -> Self {
        Self { store, ..Self::default() }
    }

    /// Begins a topic that was created in this view, in a free place.
    pub(crate) fn begin(&mut self, generation: u64, created_in: u64, store: Option<TopicStore>) {
        *self = Self { generation, created_in, ..Self::new(store) };
    }

    /// Ends the topic after the view has closed its place: the writers are removed, and the readers
    /// receive nothing more. Returns the readers, because their listeners may hold writers, and
    /// must be dropped without holding the topic's lock.
    pub(crate) fn end(&mut self, now: Now) -> Vec<Arc<ReaderCore>> {
        self.participants_gone(|_| true, now);
        self.is_over = true;
        self.store = None;
        let readers = std::mem::take(&mut self.readers);
        readers.iter().for_each(|reader| reader.core.end());
        readers.into_iter().map(|reader| reader.core).collect()
    }

    /// Returns the generation of the topic that has the place; 0 if the topic is declared.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Delivers a message of the topic.
    #[inline]
    pub(crate) fn deliver(&mut self, message: &Message<'_>, now: Now) {
        if self.is_over || message.view.get() <= self.created_in {
            return;
        }
        self.ordinal += 1;
        if let Some(tail) = &mut self.tail {
            tail.add(message);
        }
        let Some((header, body)) = Header::read(message.payload) else {
            tracing::warn!(sender = %message.sender, "a message is not a sample, and is ignored");
            return;
        };
        let participant = ParticipantId::of(message);
        let writer = PublicationHandle { participant, writer: header.writer };
        match header.kind {
            Kind::Announce => self.announced(writer, &header, body, now),
            Kind::Gone => self.writer_gone(writer, now),
            Kind::Begun => {
                let begun = writer.participant;
                self.participants_gone(|participant| participant == begun, now);
            }
            Kind::Alive => {
                self.heard(writer, None, now);
            }
            _ => self.sample(writer, &header, message, body, now),
        }
    }

    /// Ends a batch of messages that were delivered together.
    pub(crate) fn flush(&self) {
        for reader in &self.readers {
            reader.core.flush();
        }
    }

    fn announced(&mut self, writer: PublicationHandle, header: &Header, body: &[u8], now: Now) {
        if self.has_too_many(writer) {
            return tracing::warn!(%writer, "a writer's participant has too many writers: it is \
                 ignored");
        }
        if header.instance != InstanceHandle::of_generation(self.generation) {
            return tracing::warn!(%writer, "a writer belongs to an earlier topic of the place: it \
                 is ignored");
        }
        match decode_writer(body, header.encoding) {
            Ok(qos) => self.came(writer, qos, header.sequence, now),
            Err(error) => tracing::warn!(%writer, %error, "an announcement is invalid"),
        }
    }

    /// Records a writer that has already written `sequence` messages.
    pub(super) fn came(
        &mut self,
        writer: PublicationHandle,
        qos: WriterQos,
        sequence: u64,
        now: Now,
    ) {
        // The writer has announced itself again, so its earlier announcements are void.
        self.writer_gone(writer, now);
        self.writers.add(writer, qos, sequence, now.elapsed);
        self.timing_changed = true;
        let Self { writers, readers, .. } = self;
        if let Some(known) = writers.get(writer) {
            readers.iter_mut().for_each(|reader| reader.consider(known));
        }
    }

    /// Returns whether an external participant has reached its limit with its other writers.
    fn has_too_many(&self, writer: PublicationHandle) -> bool {
        let is_other = |known: &&KnownWriter| {
            known.handle.participant == writer.participant && known.handle != writer
        };
        matches!(writer.participant, ParticipantId::Client(_))
            && self.writers.iter().filter(is_other).count() >= OUTSIDE_MAX
    }

    /// Records that a writer is alive. Returns `false` if the writer is unknown.
    #[inline]
    fn heard(&mut self, writer: PublicationHandle, sequence: Option<u64>, now: Now) -> bool {
        let Some(heard) = self.writers.heard(writer, sequence, now.elapsed) else { return false };
        for revived in &heard.revived {
            let matched = self.readers.iter().filter(|reader| reader.is_matched(*revived));
            matched.for_each(|reader| reader.core.lives(*revived, true));
        }
        if heard.lost > 0 {
            let matched = self.readers.iter().filter(|reader| reader.is_matched(writer));
            matched.for_each(|reader| reader.core.lost(heard.lost));
        }
        true
    }

    fn sample(
        &mut self,
        writer: PublicationHandle,
        header: &Header,
        message: &Message<'_>,
        body: &[u8],
        now: Now,
    ) {
        self.assume(writer, header.sequence, now);
        if !self.heard(writer, Some(header.sequence), now) {
            tracing::warn!(%writer, "a sample of an unannounced writer is ignored");
            return;
        }
        let lifespan = self.writers.get(writer).map(|known| known.qos.lifespan.duration);
        let arrival = Arrival {
            kind: header.kind,
            info: SampleInfo {
                source_timestamp: header.source,
                sequence: header.sequence,
                ordinal: self.ordinal,
                place: (message.view, message.place),
                encoding: header.encoding,
                origin: header.origin,
                ..SampleInfo::of_state(header.instance, writer, now.wall)
            },
            expires: header.source.after(lifespan.unwrap_or(Duration::MAX)),
        };
        let Self { store, readers, payloads, .. } = self;
        let mut replaced = None;
        let mut incoming = IncomingValue::new(body, payloads);
        for reader in readers.iter().filter(|reader| reader.is_matched(writer)) {
            reader.core.deliver(&arrival, &mut incoming, now);
        }
        if let Some(store) = store {
            replaced = store.apply(&arrival, &mut incoming);
        }
        if let Some(replaced) = replaced {
            payloads.give_back(replaced);
        }
    }

    /// Records that a writer or its participant has gone.
    pub(super) fn writer_gone(&mut self, writer: PublicationHandle, now: Now) {
        let Some(known) = self.writers.remove(writer) else { return };
        for reader in &mut self.readers {
            if reader.is_matched(writer) {
                reader.matched.retain(|matched| *matched != writer);
                reader.core.unmatched(writer, known.is_alive, now);
            }
        }
        if let Some(store) = &mut self.store {
            store.writer_left(writer);
        }
    }

    /// Records that participants have gone or have come back as new participants. In both cases,
    /// their old writers are removed.
    pub(crate) fn participants_gone(&mut self, is_gone: impl Fn(ParticipantId) -> bool, now: Now) {
        let gone: Vec<PublicationHandle> = self
            .writers
            .iter()
            .map(|known| known.handle)
            .filter(|handle| is_gone(handle.participant))
            .collect();
        for writer in gone {
            self.writer_gone(writer, now);
        }
    }

    /// Adds a reader to the topic of this generation: the reader is matched with the existing
    /// writers, and receives the kept samples. Returns `false` if that topic no longer exists.
    #[must_use]
    pub(crate) fn attach(&mut self, generation: u64, core: Arc<ReaderCore>, now: Now) -> bool {
        if self.is_over || self.generation != generation {
            return false;
        }
        let mut reader = Attached { core, matched: Vec::new() };
        for known in self.writers.iter() {
            reader.consider(known);
        }
        if reader.core.qos.durability >= Durability::TransientLocal {
            self.feed(&reader, now);
        }
        reader.core.flush();
        self.readers.push(reader);
        true
    }

    /// Adds a reader that has received everything so far, with the writers that it has matched and
    /// those with which it has been compared, as far as they were known. Mismatches among the
    /// compared writers have already been reported to it.
    pub(super) fn put_reader(
        &mut self,
        core: Arc<ReaderCore>,
        matched: Vec<PublicationHandle>,
        compared: &[PublicationHandle],
        now: Now,
    ) {
        let mut reader = Attached { core, matched };
        for known in self.writers.iter() {
            let was_matched = reader.is_matched(known.handle);
            let matches = incompatible(&known.qos, &reader.core.qos).is_empty();
            if was_matched && !matches {
                reader.matched.retain(|matched| *matched != known.handle);
                reader.core.unmatched(known.handle, known.is_alive, now);
            }
            if was_matched != matches || !compared.contains(&known.handle) {
                reader.consider(known);
            }
        }
        self.readers.push(reader);
    }

    /// Removes all readers, and returns them with their matched writers.
    pub(super) fn take_readers(&mut self) -> Vec<(Arc<ReaderCore>, Vec<PublicationHandle>)> {
        let readers = std::mem::take(&mut self.readers);
        readers.into_iter().map(|reader| (reader.core, reader.matched)).collect()
    }

    pub(super) fn readers(&self) -> impl Iterator<Item = &ReaderCore> {
        self.readers.iter().map(|reader| &*reader.core)
    }

    /// Returns whether the topic has a reader that has not been deleted.
    pub(crate) fn has_wanted_reader(&self) -> bool {
        self.readers().any(|reader| !reader.is_deleted())
    }

    /// Delivers the kept samples in the topic's order, then the state of the instances. Kept
    /// samples of writers that have gone count like the others, as the topic's level promises.
    fn feed(&mut self, reader: &Attached, now: Now) {
        let Self { store, payloads, writers, .. } = self;
        let Some(store) = store else { return };
        let refuses = |writer| writers.get(writer).is_some() && !reader.is_matched(writer);
        for stored in store.in_order() {
            let mut arrival = stored.arrival;
            if refuses(arrival.info.publication_handle) {
                continue;
            }
            arrival.info.is_historical = true;
            arrival.info.reception_timestamp = now.wall;
            let mut incoming = IncomingValue::kept(&stored.payload, payloads);
            reader.core.deliver(&arrival, &mut incoming, now);
        }
        for (handle, instance) in store.instances() {
            reader.core.adopt(handle, &instance.writers, ended(instance.state), now);
        }
    }

    /// Delivers a kept sample to the readers that existed before it.
    pub(super) fn hand_over(&mut self, sample: &StoredSample, now: Now) {
        let Self { readers, payloads, writers, .. } = self;
        let writer = sample.arrival.info.publication_handle;
        let is_gone = writers.get(writer).is_none();
        let mut arrival = sample.arrival;
        arrival.info.is_historical = true;
        arrival.info.reception_timestamp = now.wall;
        let mut incoming = IncomingValue::kept(&sample.payload, payloads);
        for reader in readers.iter().filter(|reader| is_gone || reader.is_matched(writer)) {
            reader.core.deliver(&arrival, &mut incoming, now);
        }
    }

    /// Passes the state of the kept instances to the readers.
    pub(super) fn adopt_instances(&self, now: Now) {
        let Some(store) = &self.store else { return };
        for (handle, instance) in store.instances() {
            for reader in &self.readers {
                reader.core.adopt(handle, &instance.writers, ended(instance.state), now);
            }
        }
    }

    /// Records that `count` messages from a writer did not arrive.
    pub(super) fn lost(&self, writer: PublicationHandle, count: u64) {
        for reader in self.readers.iter().filter(|reader| count > 0 && reader.is_matched(writer)) {
            reader.core.lost(count);
        }
    }

    /// Removes a reader. Its listener may hold writers, so the caller must drop it without holding
    /// the topic's lock.
    pub(crate) fn detach(&mut self, reader: SubscriptionHandle) -> Option<Arc<ReaderCore>> {
        let at = self.readers.iter().position(|attached| attached.core.handle == reader)?;
        Some(self.readers.remove(at).core)
    }

    /// Returns the writers that match a reader.
    pub(crate) fn matched_publications(&self, reader: SubscriptionHandle) -> Vec<PublicationData> {
        let attached = self.readers.iter().find(|attached| attached.core.handle == reader);
        let matched = attached.map_or(&[][..], |attached| &attached.matched);
        matched
            .iter()
            .filter_map(|writer| self.writers.get(*writer))
            .map(|known| PublicationData { handle: known.handle, qos: known.qos.clone() })
            .collect()
    }

    /// Handles what has become due: expired leases, and the readers' due times.
    pub(crate) fn tick(&mut self, now: Now) {
        for writer in self.writers.silent(now.elapsed) {
            for reader in self.readers.iter().filter(|reader| reader.is_matched(writer)) {
                reader.core.sleeps(writer, now);
            }
        }
        for reader in &self.readers {
            reader.core.tick(now);
        }
    }

    /// Returns whether something may be due earlier than was known at the last call.
    pub(crate) fn take_timing_changed(&mut self) -> bool {
        std::mem::take(&mut self.timing_changed)
    }

    /// Returns when something may become due.
    pub(crate) fn next_due(&self, now: Duration) -> Option<Duration> {
        let readers = self.readers.iter().filter_map(|reader| reader.core.next_due(now));
        readers.chain(self.writers.next_due()).min()
    }
}

/// Returns how a kept instance has ended.
fn ended(state: InstanceStates) -> Option<Kind> {
    (state == InstanceStates::NOT_ALIVE_DISPOSED).then_some(Kind::Dispose)
}

impl Attached {
    #[inline]
    fn is_matched(&self, writer: PublicationHandle) -> bool {
        self.matched.contains(&writer)
    }

    /// Matches a writer, or reports in which policies it offers less than is requested.
    fn consider(&mut self, known: &KnownWriter) {
        let differing = incompatible(&known.qos, &self.core.qos);
        if differing.is_empty() {
            self.matched.push(known.handle);
            self.core.matched(known.handle, known.is_alive);
        } else {
            self.core.incompatible(&differing);
        }
    }
}
