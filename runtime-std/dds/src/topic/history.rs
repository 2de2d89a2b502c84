//! A topic as its log tells it from some place on, for a reader that begins there.
//!
//! What the log says before that place is not known: a writer that announced itself there is taken
//! to offer all that the topic's level gives.

use std::sync::Arc;

use super::state::TopicState;
use crate::domain::Level;
use crate::participant::PublicationHandle;
use crate::qos::WriterQos;
use crate::reader::ReaderCore;
use crate::time::Now;

impl TopicState {
    /// A topic of which that many messages are behind, with one reader.
    pub(crate) fn behind(ordinal: u64, level: Level, reader: Arc<ReaderCore>) -> Self {
        let mut topic = Self::new(None);
        (topic.ordinal, topic.assumed) = (ordinal, Some(level));
        topic.put_reader(reader, Vec::new(), Now::read());
        topic
    }

    /// How many messages of the topic there were so far.
    pub(crate) const fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Messages before that place are gone: the readers have lost them.
    pub(crate) fn skip_to(&mut self, place: u64) {
        let lost = place.saturating_sub(self.ordinal);
        self.ordinal = self.ordinal.max(place);
        self.readers().filter(|_| lost > 0).for_each(|reader| reader.lost(lost));
    }

    /// Takes a writer for one that was there before, if that is not known here.
    pub(super) fn assume(&mut self, writer: PublicationHandle, sequence: u64, now: Now) {
        if let Some(level) = self.assumed
            && self.writers.get(writer).is_none()
        {
            self.came(writer, WriterQos::of(level), sequence.saturating_sub(1), now);
        }
    }

    /// Takes over the readers of a topic that the log told, which has come as far as this one.
    pub(crate) fn take_readers_of(&mut self, told: &mut Self, now: Now) {
        let known: Vec<PublicationHandle> = told.writers.iter().map(|of| of.handle).collect();
        for gone in known.into_iter().filter(|handle| self.writers.get(*handle).is_none()) {
            told.writer_gone(gone, now);
        }
        for (reader, matched) in told.take_readers() {
            self.put_reader(reader, matched, now);
        }
        self.flush();
    }
}
