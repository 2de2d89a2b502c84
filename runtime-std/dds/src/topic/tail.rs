//! The last messages of a topic, kept while readers catch up from its log, because the most recent
//! messages may not be on disk yet.
//!
//! # Invariants
//! - The tail has all messages after number `before`, up to the topic's latest.
//! - The tail is bounded. A reader that lags further behind continues to read the log.

use std::collections::VecDeque;
use std::sync::Arc;

use tramontane::{ClientId, Message, NodeId, Place, SubgroupId, ViewId};

use super::state::TopicState;

/// Maximum number of messages that are kept.
const MESSAGES_MAX: usize = 4_096;
const BYTES_MAX: usize = 4 << 20;

/// A kept message.
#[derive(Debug)]
pub(crate) struct KeptMessage {
    subgroup: SubgroupId,
    view: ViewId,
    place: Place,
    sender: NodeId,
    client: Option<ClientId>,
    payload: Vec<u8>,
}

impl KeptMessage {
    fn of(message: &Message<'_>) -> Self {
        let Message { subgroup, view, place, sender, payload, client, .. } = *message;
        Self { subgroup, view, place, sender, client, payload: payload.to_vec() }
    }

    pub(crate) fn message(&self) -> Message<'_> {
        let Self { subgroup, view, place, sender, client, ref payload } = *self;
        let (is_large, is_replayed) = (false, false);
        Message { subgroup, view, place, sender, payload, client, is_large, is_replayed }
    }
}

/// The last messages.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// Number of readers that are catching up.
    readers: usize,
    /// The number of the message before the first kept one.
    before: u64,
    kept: VecDeque<Arc<KeptMessage>>,
    bytes: usize,
}

impl Tail {
    fn begin_at(&mut self, ordinal: u64) {
        *self = Self { readers: self.readers, before: ordinal, ..Self::default() };
    }

    /// Keeps the next message.
    #[cold]
    pub(super) fn add(&mut self, message: &Message<'_>) {
        self.bytes += message.payload.len();
        self.kept.push_back(Arc::new(KeptMessage::of(message)));
        while (self.bytes > BYTES_MAX || self.kept.len() > MESSAGES_MAX)
            && let Some(first) = self.kept.pop_front()
        {
            self.bytes -= first.payload.len();
            self.before += 1;
        }
    }
}

impl TopicState {
    /// Records that a reader is reading the log. From then on, messages are kept for it.
    pub(crate) fn reader_comes(&mut self) {
        let ordinal = self.ordinal;
        let tail = self.tail.get_or_insert_with(|| Tail { before: ordinal, ..Tail::default() });
        tail.readers += 1;
    }

    /// Records that a reader has caught up or has been deleted.
    pub(crate) fn reader_has_come(&mut self) {
        if let Some(tail) = &mut self.tail {
            tail.readers = tail.readers.saturating_sub(1);
        }
        self.tail.take_if(|tail| tail.readers == 0);
    }

    /// Returns the number of the message before the first one kept for readers from the log.
    pub(crate) fn tail_begin(&self) -> u64 {
        self.tail.as_ref().map_or(self.ordinal, |tail| tail.before)
    }

    /// Returns up to `most` messages after this number, or `None` if some of them are not kept.
    pub(crate) fn messages_behind(
        &self,
        ordinal: u64,
        most: usize,
    ) -> Option<Vec<Arc<KeptMessage>>> {
        if ordinal >= self.ordinal {
            return Some(Vec::new());
        }
        let tail = self.tail.as_ref()?;
        let skipped = usize::try_from(ordinal.checked_sub(tail.before)?).ok()?;
        Some(tail.kept.iter().skip(skipped).take(most).cloned().collect())
    }

    /// Restarts the tail when the topic continues at another number: the kept messages are not
    /// those that precede it.
    pub(super) fn restart_tail(&mut self) {
        let ordinal = self.ordinal;
        if let Some(tail) = &mut self.tail {
            tail.begin_at(ordinal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_topics::{Side, announced, said};
    use super::*;
    use crate::wire::Kind;

    fn count(side: &Side, ordinal: u64) -> Option<usize> {
        Some(side.topic.messages_behind(ordinal, usize::MAX)?.len())
    }

    #[test]
    fn tail_keeps_bounded_messages_for_late_readers() {
        let mut side = Side::new(1);
        side.tell(&announced(0));
        assert_eq!((count(&side, 0), count(&side, 1)), (None, Some(0)));
        side.topic.reader_comes();
        side.topic.reader_comes();
        for number in 1..=10 {
            side.tell(&said(0, Kind::Data, number, 1, &[0; 4]));
        }
        assert_eq!((count(&side, 0), count(&side, 1), count(&side, 8)), (None, Some(10), Some(3)));
        let kept = side.topic.messages_behind(9, 1).expect("they are kept");
        assert_eq!(kept[0].message().payload.last(), Some(&0));
        side.topic.reader_has_come();
        assert_eq!(count(&side, 1), Some(10), "one still comes");
        for number in 11..=13 {
            side.tell(&said(0, Kind::Data, number, 1, &vec![0; BYTES_MAX / 2 - 64]));
        }
        assert_eq!((count(&side, 11), count(&side, 12)), (None, Some(2)));
        assert_eq!(side.topic.tail_begin(), 12);
        side.topic.reader_has_come();
        assert_eq!((count(&side, 13), count(&side, 14)), (None, Some(0)));
    }

    #[test]
    fn state_restore_clears_the_tail() {
        let (mut member, mut outside) = (Side::new(1), Side::new(1));
        outside.topic.reader_comes();
        member.tell(&announced(0));
        (1..=4).for_each(|number| member.tell(&said(0, Kind::Data, number, 1, &[0; 4])));
        outside.take_over(&member);
        assert_eq!((count(&outside, 0), count(&outside, 5)), (None, Some(0)));
        outside.tell(&said(0, Kind::Data, 5, 1, &[0; 4]));
        assert_eq!((count(&outside, 4), count(&outside, 5)), (None, Some(1)));
    }
}
