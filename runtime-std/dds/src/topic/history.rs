//! A topic as its log shows it after some position, for a reader that begins there.
//!
//! The log before that position is unknown: a writer that announced itself earlier is assumed to
//! offer all that the topic's level provides.

use std::sync::Arc;

use super::state::TopicState;
use crate::domain::Level;
use crate::participant::PublicationHandle;
use crate::qos::WriterQos;
use crate::reader::ReaderCore;
use crate::time::Now;

impl TopicState {
    /// Creates a topic that has already had `ordinal` messages, with one reader.
    pub(crate) fn behind(ordinal: u64, level: Level, reader: Arc<ReaderCore>) -> Self {
        let mut topic = Self::new(None);
        (topic.ordinal, topic.assumed) = (ordinal, Some(level));
        topic.put_reader(reader, Vec::new(), &[], Now::read());
        topic
    }

    /// Returns the number of the topic's messages so far.
    pub(crate) const fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Records that messages before this position are no longer available, so the readers have lost
    /// them.
    pub(crate) fn skip_to(&mut self, place: u64) {
        let lost = place.saturating_sub(self.ordinal);
        self.ordinal = self.ordinal.max(place);
        if lost > 0 {
            // These messages are counted here, and must not be counted again by their writers'
            // numbers.
            self.writers.are_behind_a_gap();
            self.readers().for_each(|reader| reader.lost(lost));
        }
    }

    /// Assumes that a writer existed before, if it is unknown here.
    pub(super) fn assume(&mut self, writer: PublicationHandle, sequence: u64, now: Now) {
        if let Some(level) = self.assumed
            && self.writers.get(writer).is_none()
        {
            self.came(writer, WriterQos::of(level), sequence.saturating_sub(1), now);
        }
    }

    /// Takes over the readers of a topic that was read from the log, once that topic has come as
    /// far as this one.
    pub(crate) fn take_readers_of(&mut self, told: &mut Self, now: Now) {
        let known: Vec<PublicationHandle> = told.writers.iter().map(|of| of.handle).collect();
        for gone in known.into_iter().filter(|handle| self.writers.get(*handle).is_none()) {
            told.writer_gone(gone, now);
        }
        let known: Vec<PublicationHandle> = told.writers.iter().map(|of| of.handle).collect();
        for (reader, matched) in told.take_readers() {
            // A thread that deletes a reader marks it first, and then removes it from this topic.
            if !reader.is_deleted() {
                self.put_reader(reader, matched, &known, now);
            }
        }
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::test_topics::{Side, announced, announced_as, reader, said};
    use super::*;
    use crate::participant::{ParticipantId, SubscriptionHandle};
    use crate::qos::{Deadline, ReaderQos};
    use crate::wire::Kind;

    /// The log has dropped the first messages, including all announcements. They are reported as
    /// lost, and the remaining messages are delivered. When the reader has caught up, only the
    /// existing writers remain.
    #[test]
    fn dropped_log_messages_are_reported_as_lost() {
        let handle = |writer| PublicationHandle { participant: ParticipantId::Node(0), writer };
        let reader = reader();
        let mut history =
            Side::with(TopicState::behind(2, Level::Volatile, Arc::clone(&reader)), reader);
        history.topic.skip_to(5);
        history.topic.skip_to(4);
        assert_eq!((history.reader.lost_count(), history.topic.ordinal()), (3, 5));
        history.tell(&said(0, Kind::Data, 9, 1, &[0; 4]));
        history.tell(&said(1, Kind::Data, 4, 1, &[0; 4]));
        assert_eq!(history.given, [(6, handle(0), 9), (7, handle(1), 4)]);
        // The same happens in the middle, and the loss is counted only once: after a gap, the
        // writers' numbers do not reveal it again.
        history.topic.skip_to(17);
        history.tell(&said(0, Kind::Data, 12, 1, &[0; 4]));
        assert_eq!(history.reader.lost_count(), 13);
        history.tell(&said(0, Kind::Data, 15, 1, &[0; 4]));
        assert_eq!(history.reader.lost_count(), 15, "the writer left out two");

        let mut present = TopicState::new(None);
        present.came(handle(0), WriterQos::of(Level::Volatile), 15, Now::read());
        present.ordinal = 19;
        present.take_readers_of(&mut history.topic, Now::read());
        assert!(history.topic.take_readers().is_empty());
        let matched = |side: &Side| {
            let matched = side.topic.matched_publications(SubscriptionHandle::default());
            matched.iter().map(|of| of.handle).collect::<Vec<_>>()
        };
        let mut present = Side::with(present, Arc::clone(&history.reader));
        assert_eq!(matched(&present), [handle(0)]);
        present.tell(&said(0, Kind::Data, 16, 1, &[0; 4]));
        present.tell(&announced(2));
        assert_eq!(present.given, [(20, handle(0), 16)]);
        assert_eq!(matched(&present), [handle(0), handle(2)]);
        assert_eq!(present.reader.lost_count(), 15, "nothing is lost after that");
    }
    /// The writer's announcement may be in the log or before the part that is read. In the latter
    /// case, the mismatch is detected when the reader has caught up.
    #[test]
    fn mismatched_writer_is_reported_once() {
        let offers = WriterQos::of(Level::Atomic);
        let mut member = Side::new(1);
        member.tell(&announced_as(0, &offers));
        member.tell(&said(0, Kind::Data, 1, 1, &[0; 4]));
        assert_eq!(member.reader.incompatible_count(), 1);
        for behind in [0, 1] {
            let reader = reader();
            let told = TopicState::behind(behind, Level::Volatile, Arc::clone(&reader));
            let mut history = Side::with(told, reader);
            if behind == 0 {
                history.tell(&announced_as(0, &offers));
            }
            history.tell(&said(0, Kind::Data, 1, 1, &[0; 4]));
            member.topic.take_readers_of(&mut history.topic, Now::read());
            assert_eq!(history.reader.incompatible_count(), 1, "{behind} messages were behind");
            assert_eq!(history.reader.matched_count(), 0);
        }
    }

    /// The writer's offer is unknown until the reader has caught up.
    #[test]
    fn stronger_writer_is_matched_after_catching_up() {
        let period = Duration::from_secs(1);
        let qos = ReaderQos { deadline: Deadline { period }, ..ReaderQos::default() };
        let handle = SubscriptionHandle::default();
        let reader = Arc::new(ReaderCore::new(handle, qos, Duration::ZERO));
        let told = TopicState::behind(1, Level::Volatile, Arc::clone(&reader));
        let mut history = Side::with(told, reader);
        history.tell(&said(0, Kind::Data, 1, 1, &[0; 4]));
        assert_eq!(history.reader.matched_count(), 0);
        let mut member = Side::new(1);
        let offers = WriterQos { deadline: Deadline { period }, ..WriterQos::of(Level::Volatile) };
        member.tell(&announced_as(0, &offers));
        member.tell(&said(0, Kind::Data, 1, 1, &[0; 4]));
        member.topic.take_readers_of(&mut history.topic, Now::read());
        assert_eq!(history.reader.matched_count(), 1);
    }
}
