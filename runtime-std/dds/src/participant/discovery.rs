//! What participants tell each other of their readers, and which of them match the writers here.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::directory::DirectoryState;
use super::facts::DomainFacts;
use super::handles::{ParticipantId, PublicationHandle, SubscriptionData, SubscriptionHandle};
use crate::cdr::{Encoding, decode, encode};
use crate::error::DdsError;
use crate::qos::{ReaderQos, incompatible};
use crate::wire::ReaderAnnouncement;
use crate::writer::WriterCore;

/// The most readers of a participant outside, and in each topic the most writers: what it says is
/// kept by all members.
pub(crate) const OUTSIDE_MAX: usize = 256;

/// A reader of the domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KnownReader {
    handle: SubscriptionHandle,
    topic: u32,
    generation: u64,
    qos: ReaderQos,
}

/// All readers of the domain, and the writers of this participant.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    readers: Vec<KnownReader>,
    writers: Vec<Arc<WriterCore>>,
}

impl Discovery {
    /// A participant said something of a reader.
    pub(super) fn heard(&mut self, participant: ParticipantId, said: ReaderAnnouncement) {
        let ReaderAnnouncement { topic, generation, reader, qos } = said;
        let handle = SubscriptionHandle { participant, reader };
        self.forget(|known| known.handle == handle);
        let has_too_many = || {
            let of = self.readers.iter().filter(|known| known.handle.participant == participant);
            matches!(participant, ParticipantId::Client(_)) && of.count() >= OUTSIDE_MAX
        };
        if qos.is_some() && has_too_many() {
            return tracing::warn!(%participant, "it has too many readers: one is left out");
        }
        if let Some(qos) = qos {
            self.add(KnownReader { handle, topic, generation, qos });
        }
    }

    /// A topic is deleted: nobody writes it any more.
    pub(super) fn stop_writers(&mut self, topic: usize, generation: u64) {
        let stopped =
            |writer: &&Arc<WriterCore>| writer.topic == topic && writer.generation == generation;
        self.writers.iter().filter(stopped).for_each(|writer| writer.stop());
    }

    /// The topic of that generation is gone, and its readers with it.
    pub(super) fn topic_gone(&mut self, generation: u64) {
        self.forget(|reader| reader.generation == generation);
    }

    fn add(&mut self, reader: KnownReader) {
        for writer in self.writers.iter().filter(|writer| is_of(writer, &reader)) {
            consider(writer, &reader);
        }
        self.readers.push(reader);
    }

    /// Forgets readers of which this is so.
    fn forget(&mut self, is_gone: impl Fn(&KnownReader) -> bool) {
        let Self { readers, writers } = self;
        readers.retain(|reader| {
            if !is_gone(reader) {
                return true;
            }
            for writer in writers.iter().filter(|writer| matches(writer, reader)) {
                writer.unmatched();
            }
            false
        });
    }

    /// Participants are gone, and their readers with them.
    pub(super) fn participants_gone(&mut self, is_gone: impl Fn(ParticipantId) -> bool) {
        self.forget(|reader| is_gone(reader.handle.participant));
    }

    /// A writer of this participant.
    pub(super) fn add_writer(&mut self, writer: &Arc<WriterCore>) {
        for reader in self.readers.iter().filter(|reader| is_of(writer, reader)) {
            consider(writer, reader);
        }
        self.writers.push(Arc::clone(writer));
    }

    pub(super) fn remove_writer(&mut self, handle: PublicationHandle) {
        self.writers.retain(|writer| writer.handle != handle);
    }

    pub(super) fn writers(&self) -> Vec<Arc<WriterCore>> {
        self.writers.clone()
    }

    /// The readers that match a writer.
    pub(super) fn matched(&self, writer: &WriterCore) -> Vec<SubscriptionData> {
        let matched = self.readers.iter().filter(|reader| matches(writer, reader));
        matched
            .map(|known| SubscriptionData { handle: known.handle, qos: known.qos.clone() })
            .collect()
    }

    /// The readers, for a participant that joins.
    pub(super) fn snapshot(
        &self,
        directory: DirectoryState,
        facts: &DomainFacts,
    ) -> Result<Vec<u8>, DdsError> {
        encode(&(&self.readers, directory, facts))
    }

    /// Takes over what another participant knows of readers, instead of what is known here. Gives
    /// what it knows of topics. No bytes are the state of a domain that begins: nobody knows
    /// anything then.
    pub(super) fn restore(&mut self, bytes: &[u8]) -> Result<Option<DirectoryState>, DdsError> {
        if bytes.is_empty() {
            self.forget(|_| true);
            return Ok(None);
        }
        let (readers, directory, _): State = decode(bytes, Encoding::NATIVE)?;
        self.forget(|_| true);
        readers.into_iter().for_each(|reader| self.add(reader));
        Ok(Some(directory))
    }

    /// The same for a participant outside, which may know most of it: what it knows and is so
    /// still stays matched.
    pub(super) fn take_over(&mut self, bytes: &[u8]) -> Result<DirectoryState, DdsError> {
        let (readers, directory, _): State = decode(bytes, Encoding::NATIVE)?;
        self.forget(|known| !readers.contains(known));
        for reader in readers {
            if !self.readers.contains(&reader) {
                self.add(reader);
            }
        }
        Ok(directory)
    }
}

/// What a snapshot has.
type State = (Vec<KnownReader>, DirectoryState, DomainFacts);

/// What the domain is, as a snapshot tells it.
pub(super) fn facts_of(snapshot: &[u8]) -> Result<DomainFacts, DdsError> {
    let (_, _, facts): State = decode(snapshot, Encoding::NATIVE)?;
    Ok(facts)
}

fn is_of(writer: &WriterCore, reader: &KnownReader) -> bool {
    u32::try_from(writer.topic).is_ok_and(|topic| topic == reader.topic)
        && writer.generation == reader.generation
}

fn matches(writer: &WriterCore, reader: &KnownReader) -> bool {
    is_of(writer, reader) && incompatible(&writer.qos, &reader.qos).is_empty()
}

fn consider(writer: &WriterCore, reader: &KnownReader) {
    let differing = incompatible(&writer.qos, &reader.qos);
    if differing.is_empty() { writer.matched() } else { writer.incompatible(&differing) }
}
