//! The readers that participants announce to each other, and the readers that match this
//! participant's writers.

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

/// Maximum number of readers of an external participant, and of its writers in each topic. The
/// limit exists because all members keep its announcements.
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
    /// Handles a participant's announcement of a reader.
    pub(super) fn heard(&mut self, participant: ParticipantId, said: ReaderAnnouncement) {
        let ReaderAnnouncement { topic, generation, reader, qos } = said;
        let handle = SubscriptionHandle { participant, reader };
        self.forget(|known| known.handle == handle);
        let has_too_many = || {
            let of = self.readers.iter().filter(|known| known.handle.participant == participant);
            matches!(participant, ParticipantId::Client(_)) && of.count() >= OUTSIDE_MAX
        };
        if qos.is_some() && has_too_many() {
            return tracing::warn!(%participant, "an external participant has too many readers: one \
                 is ignored");
        }
        if let Some(qos) = qos {
            self.add(KnownReader { handle, topic, generation, qos });
        }
    }

    /// Stops the writers of a deleted topic.
    pub(super) fn stop_writers(&mut self, topic: usize, generation: u64) {
        let stopped =
            |writer: &&Arc<WriterCore>| writer.topic == topic && writer.generation == generation;
        self.writers.iter().filter(stopped).for_each(|writer| writer.stop());
    }

    /// Removes the readers of a topic generation that has been removed.
    pub(super) fn topic_gone(&mut self, generation: u64) {
        self.forget(|reader| reader.generation == generation);
    }

    fn add(&mut self, reader: KnownReader) {
        for writer in self.writers.iter().filter(|writer| is_of(writer, &reader)) {
            consider(writer, &reader);
        }
        self.readers.push(reader);
    }

    /// Forgets the readers that match the predicate.
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

    /// Removes the readers of participants that have left the domain.
    pub(super) fn participants_gone(&mut self, is_gone: impl Fn(ParticipantId) -> bool) {
        self.forget(|reader| is_gone(reader.handle.participant));
    }

    /// Adds a writer of this participant.
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

    /// Returns the readers that match a writer.
    pub(super) fn matched(&self, writer: &WriterCore) -> Vec<SubscriptionData> {
        let matched = self.readers.iter().filter(|reader| matches(writer, reader));
        matched
            .map(|known| SubscriptionData { handle: known.handle, qos: known.qos.clone() })
            .collect()
    }

    /// Returns the known readers, to be sent to a joining participant.
    pub(super) fn snapshot(
        &self,
        directory: DirectoryState,
        facts: &DomainFacts,
    ) -> Result<Vec<u8>, DdsError> {
        encode(&(&self.readers, directory, facts))
    }

    /// Replaces the known readers with another participant's, and returns that participant's
    /// directory state. Empty bytes are the state of a new domain.
    pub(super) fn restore(&mut self, bytes: &[u8]) -> Result<Option<DirectoryState>, DdsError> {
        if bytes.is_empty() {
            self.forget(|_| true);
            return Ok(None);
        }
        let (readers, directory, _): SnapshotContent = decode(bytes, Encoding::NATIVE)?;
        self.forget(|_| true);
        readers.into_iter().for_each(|reader| self.add(reader));
        Ok(Some(directory))
    }

    /// Updates an external participant's known readers from a snapshot. Entries that it already
    /// knows and that still hold remain matched.
    pub(super) fn take_over(&mut self, bytes: &[u8]) -> Result<DirectoryState, DdsError> {
        let (readers, directory, _): SnapshotContent = decode(bytes, Encoding::NATIVE)?;
        self.forget(|known| !readers.contains(known));
        for reader in readers {
            if !self.readers.contains(&reader) {
                self.add(reader);
            }
        }
        Ok(directory)
    }
}

/// The content of a snapshot.
type SnapshotContent = (Vec<KnownReader>, DirectoryState, DomainFacts);

/// Returns the domain's facts in a snapshot.
pub(super) fn facts_of(snapshot: &[u8]) -> Result<DomainFacts, DdsError> {
    let (_, _, facts): SnapshotContent = decode(snapshot, Encoding::NATIVE)?;
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
