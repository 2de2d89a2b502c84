//! Restoring a topic's state in an external participant, for the first time or again. If no member
//! has all messages that the participant missed, it receives the kept samples among them, and the
//! number of lost messages.
//!
//! # Invariants
//! - A reader receives samples in the topic's order and none twice, because each number in that
//!   order is delivered once.

use super::snapshot::Snapshot;
use super::state::TopicState;
use super::store::{StoredSample, TopicStore};
use super::writers::KnownWriter;
use crate::error::DdsError;
use crate::participant::PublicationHandle;
use crate::time::Now;

impl TopicState {
    /// Restores a member's state. Returns `false` if the state belongs to another topic, which now
    /// has the place.
    pub(crate) fn take_over(&mut self, bytes: &[u8], now: Now) -> Result<bool, DdsError> {
        let next = Snapshot::read(bytes)?;
        if next.generation != self.generation {
            return Ok(false);
        }
        let known: Vec<PublicationHandle> = self.writers.iter().map(|of| of.handle).collect();
        for gone in known.into_iter().filter(|handle| !next.has_writer(*handle)) {
            self.writer_gone(gone, now);
        }
        let seen = std::mem::replace(&mut self.ordinal, next.ordinal);
        self.restart_tail();
        let (writers, store) = next.into_parts(self.store.as_ref().map(TopicStore::keep), now);
        // New writers are added first, so that their kept samples find the readers.
        let missed: Vec<(PublicationHandle, u64)> =
            writers.into_iter().filter_map(|writer| self.adopt(writer, now)).collect();
        self.store = store;
        let handed_over = self.hand_over_kept(seen, now);
        for (writer, sequence) in missed {
            let came = handed_over.iter().filter(|of| **of == writer).count();
            let lost = sequence.saturating_sub(u64::try_from(came).unwrap_or(u64::MAX));
            self.lost(writer, lost);
        }
        self.flush();
        Ok(true)
    }

    /// Records that the topic's history after `messages` messages differs from the history seen
    /// here, because its members were lost at once. The writers are removed, and the state that is
    /// restored next is delivered from that point.
    pub(crate) fn history_changed(&mut self, messages: u64, now: Now) {
        self.participants_gone(|_| true, now);
        self.ordinal = self.ordinal.min(messages);
        self.restart_tail();
        for reader in self.readers() {
            reader.history_changed(self.ordinal.saturating_add(1));
        }
    }

    /// Records a writer. If the writer was known, returns the number of its messages that did not
    /// arrive.
    fn adopt(&mut self, writer: KnownWriter, now: Now) -> Option<(PublicationHandle, u64)> {
        let handle = writer.handle;
        match self.writers.get(handle).map(|known| (known.sequence, known.qos == writer.qos)) {
            Some((sequence, true)) => {
                let missed = writer.sequence.saturating_sub(sequence);
                self.writers.went_on(handle, writer.sequence, now.elapsed);
                (missed > 0).then_some((handle, missed))
            }
            _ => {
                self.came(handle, writer.qos, writer.sequence, now);
                None
            }
        }
    }

    /// Delivers the kept samples after number `seen` in the topic's order. Returns their writers.
    fn hand_over_kept(&mut self, seen: u64, now: Now) -> Vec<PublicationHandle> {
        let Some(store) = &self.store else { return Vec::new() };
        let kept: Vec<StoredSample> = store
            .in_order()
            .into_iter()
            .filter(|kept| kept.arrival.info.ordinal > seen)
            .cloned()
            .collect();
        let writers = kept.iter().map(|kept| kept.arrival.info.publication_handle).collect();
        kept.iter().for_each(|sample| self.hand_over(sample, now));
        self.adopt_instances(now);
        writers
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::test_topics::{Side, announced, said};
    use super::*;
    use crate::domain::Level;
    use crate::participant::{ParticipantId, SubscriptionHandle};
    use crate::qos::WriterQos;
    use crate::wire::{Kind, encode_writer};

    const WRITERS: u32 = 3;

    proptest! {
        /// The participant misses messages, restores a state, misses others, and so on. It receives
        /// each message once, in order, or learns that the message is lost. Afterwards, it keeps
        /// the same samples as a member.
        #[test]
        fn missed_samples_arrive_once_or_are_reported_lost(
            deeds in prop::collection::vec((0..WRITERS, 0..3_u8, prop::bool::weighted(0.6)), 1..80),
            depth in 1..4_usize,
        ) {
            let (mut member, mut outside) = (Side::new(depth), Side::new(depth));
            for writer in 0..WRITERS {
                member.tell(&announced(writer));
            }
            outside.take_over(&member);
            let mut numbers = [0; WRITERS as usize];
            let mut is_behind = false;
            for (writer, instance, arrives) in deeds {
                let number = &mut numbers[writer as usize];
                *number += 1;
                let message = said(writer, Kind::Data, *number, instance, &[0; 4]);
                member.tell(&message);
                if !arrives {
                    is_behind = true;
                } else if std::mem::take(&mut is_behind) {
                    outside.take_over(&member);
                } else {
                    outside.tell(&message);
                }
            }
            outside.take_over(&member);
            let is_given = |sample: &_| member.given.contains(sample);
            prop_assert!(outside.given.iter().all(is_given));
            prop_assert!(outside.given.is_sorted_by(|one, next| one.0 < next.0));
            let lost = usize::try_from(outside.reader.lost_count()).expect("few");
            prop_assert_eq!(outside.given.len() + lost, member.given.len());
            prop_assert_eq!(outside.topic.snapshot().ok(), member.topic.snapshot().ok());
        }
    }

    #[test]
    fn takeover_replaces_departed_writers() {
        let (mut member, mut outside) = (Side::new(1), Side::new(1));
        member.tell(&announced(0));
        member.tell(&said(0, Kind::Data, 1, 7, &[0; 4]));
        outside.take_over(&member);
        member.tell(&said(0, Kind::Gone, 0, 0, &[]));
        member.tell(&announced(1));
        member.tell(&said(1, Kind::Data, 1, 8, &[0; 4]));
        outside.take_over(&member);
        outside.take_over(&member);
        let handle = |writer| PublicationHandle { participant: ParticipantId::Node(0), writer };
        assert_eq!(outside.given, [(2, handle(0), 1), (5, handle(1), 1)]);
        let matched = outside.topic.matched_publications(SubscriptionHandle::default());
        assert_eq!(matched.iter().map(|of| of.handle).collect::<Vec<_>>(), [handle(1)]);
        assert_eq!(outside.reader.lost_count(), 0);
    }

    /// The members were lost at once, and with them some messages seen here. By now, the topic may
    /// have more messages than were seen, or fewer.
    #[test]
    fn reader_restarts_at_first_changed_message() {
        for writes in [3, 9] {
            let (mut before, mut outside) = (Side::new(9), Side::new(9));
            before.tell(&announced(0));
            (1..=5).for_each(|number| before.tell(&said(0, Kind::Data, number, 1, &[0; 4])));
            outside.take_over(&before);
            let numbers = |side: &Side| side.given.iter().map(|one| one.0).collect::<Vec<_>>();
            assert_eq!(numbers(&outside), [2, 3, 4, 5, 6]);
            let mut after = Side::new(9);
            after.tell(&announced(0));
            (1..=writes).for_each(|number| after.tell(&said(0, Kind::Data, number, 2, &[0; 4])));
            outside.given.clear();
            outside.topic.history_changed(3, Now::read());
            outside.take_over(&after);
            assert_eq!(numbers(&outside), (4..=writes + 1).collect::<Vec<_>>());
            let lost = outside.reader.take_lost();
            assert_eq!((lost.total_count, lost.history_changed_from), (0, Some(4)));
            assert_eq!(outside.reader.take_lost().history_changed_from, None);
        }
    }

    /// A place has several topics in succession, and messages of an earlier topic may arrive late.
    #[test]
    fn messages_of_earlier_topic_are_ignored() {
        let qos = encode_writer(&WriterQos::of(Level::Volatile)).expect("plain");
        let mut outside = Side::new(1);
        outside.tell(&said(0, Kind::Announce, 0, 7, &qos));
        outside.tell(&said(0, Kind::Data, 1, 1, &[0; 4]));
        assert_eq!(outside.given, [], "its writer is of another topic");
        let mut member = Side::new(1);
        member.topic.begin(3, 0, None);
        member.tell(&said(0, Kind::Announce, 0, 0, &qos));
        assert_eq!(member.topic.ordinal(), 1);
        let state = member.topic.snapshot().expect("plain");
        assert!(!outside.topic.take_over(&state, Now::read()).expect("it is a state"));
        assert_eq!(outside.topic.ordinal(), 2, "it stays as it was");
    }
}
