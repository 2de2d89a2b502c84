//! The latest messages of a subgroup, kept once for all subscribers, and digests of the order: one
//! at each kept position, and some at earlier positions, from which the others can be computed with
//! a log.
//!
//! # Invariants
//! - The buffer holds at most [`BYTES_MAX`], or a single message. A subscriber that falls further
//!   behind is disconnected; no member waits for it.
//! - The digest at the first known position is always kept, and at most [`MARKS_MAX`] digests in
//!   all.

use std::collections::VecDeque;

use tramontane_control::client_messages::{Bytes, ClientId, Position, PublishedMessage};

/// The capacity for messages, in bytes.
pub(crate) const BYTES_MAX: usize = 16 << 20;

/// The maximum number of digests kept for positions before the kept messages.
const MARKS_MAX: usize = 1 << 16;

/// The initial distance between two digests, in bytes of messages.
const MARK_BYTES: usize = 64 << 10;

/// The memory overhead per message, in bytes.
const MESSAGE_COST: usize = 64;

/// A message that was delivered to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RetainedMessage {
    pub(crate) place: u64,
    /// The message's number in the log, if there is one.
    pub(crate) record: u64,
    pub(crate) view: u64,
    pub(crate) place_in_view: u64,
    pub(crate) sender: u32,
    pub(crate) client: Option<ClientId>,
    pub(crate) payload: Box<[u8]>,
}

impl RetainedMessage {
    /// Returns the message as sent to a subscriber.
    pub(crate) fn publish(&self) -> PublishedMessage<'_> {
        let Self { place, view, place_in_view, sender, client, ref payload, .. } = *self;
        let payload = Bytes(payload);
        PublishedMessage { place, view, place_in_view, sender, client, payload }
    }

    fn cost(&self) -> usize {
        self.payload.len() + MESSAGE_COST
    }
}

/// This member's knowledge of the order up to a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The order up to exactly this position.
    At(Position),
    /// The order up to an earlier position; the messages since then are not kept here.
    Since(Position),
    /// Nothing: the position is too old, or still to come.
    Nothing,
}

/// The latest messages, at consecutive sequence positions.
#[derive(Debug)]
pub(crate) struct Retained {
    /// Each message, with the digest of the order up to and including it.
    messages: VecDeque<(RetainedMessage, u64)>,
    bytes: usize,
    /// The position of the first message, or of the next if there is none.
    begin: Position,
    /// Earlier positions: the first known one, and some later ones.
    marks: Vec<Position>,
    /// The number of message bytes after which the next position is marked, and the number since
    /// the last mark.
    mark_bytes: usize,
    unmarked_bytes: usize,
}

impl Default for Retained {
    fn default() -> Self {
        Self {
            messages: VecDeque::new(),
            bytes: 0,
            begin: Position::default(),
            marks: vec![Position::default()],
            mark_bytes: MARK_BYTES,
            unmarked_bytes: 0,
        }
    }
}

impl Retained {
    /// Starts at this position, with no earlier messages.
    pub(crate) fn begin_at(&mut self, begin: Position) {
        *self = Self { begin, marks: vec![begin], ..Self::default() };
    }

    /// Appends a message at the end, with the digest of the order up to and including it.
    pub(crate) fn add(&mut self, message: RetainedMessage, digest: u64) {
        self.bytes += message.cost();
        self.messages.push_back((message, digest));
        while self.bytes > BYTES_MAX && self.messages.len() > 1 {
            let Some((gone, digest)) = self.messages.pop_front() else { return };
            self.bytes -= gone.cost();
            self.begin = Position { place: gone.place.saturating_add(1), digest };
            self.mark(gone.cost());
        }
    }

    /// Marks the position of the first message if it is far enough from the last mark.
    fn mark(&mut self, bytes: usize) {
        self.unmarked_bytes += bytes;
        if self.unmarked_bytes < self.mark_bytes {
            return;
        }
        if self.marks.len() >= MARKS_MAX {
            let mut at = 0_usize;
            self.marks.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.mark_bytes = self.mark_bytes.saturating_mul(2);
        }
        self.marks.push(self.begin);
        self.unmarked_bytes = 0;
    }

    /// Returns what is known about the order up to a position.
    pub(crate) fn known_at(&self, place: u64) -> Known {
        if place > self.end() {
            return Known::Nothing;
        }
        if let Some(since) = place.checked_sub(self.begin.place) {
            let last = usize::try_from(since).ok().and_then(|since| since.checked_sub(1));
            let digest = match last {
                None => self.begin.digest,
                Some(last) => self.messages.get(last).map_or(0, |(_, digest)| *digest),
            };
            return Known::At(Position { place, digest });
        }
        let later = self.marks.partition_point(|mark| mark.place <= place);
        match later.checked_sub(1).and_then(|last| self.marks.get(last)) {
            Some(mark) if mark.place == place => Known::At(*mark),
            Some(mark) => Known::Since(*mark),
            None => Known::Nothing,
        }
    }

    /// Returns the first sequence position that is kept, or the next position if none is kept.
    pub(crate) const fn first(&self) -> u64 {
        self.begin.place
    }

    /// Returns the sequence position after the last message.
    pub(crate) fn end(&self) -> u64 {
        self.end_position().place
    }

    /// Returns the position after the last message, with its digest.
    pub(crate) fn end_position(&self) -> Position {
        self.messages.back().map_or(self.begin, |(last, digest)| Position {
            place: last.place.saturating_add(1),
            digest: *digest,
        })
    }

    /// Returns messages from one sequence position up to another: at most `bytes_max` bytes, but at
    /// least one message.
    pub(crate) fn from(&self, place: u64, to: u64, bytes_max: usize) -> Vec<PublishedMessage<'_>> {
        let skipped = usize::try_from(place.saturating_sub(self.first())).unwrap_or(usize::MAX);
        let mut bytes = 0_usize;
        let fits = |(message, _): &&(RetainedMessage, u64)| {
            let is_first = bytes == 0;
            bytes += message.cost();
            message.place < to && (is_first || bytes <= bytes_max)
        };
        let here = self.messages.range(skipped.min(self.messages.len())..);
        here.take_while(fits).map(|(message, _)| message.publish()).collect()
    }
}

/// The number of message bytes handed to the system at a time.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(place: u64, bytes: usize) -> RetainedMessage {
        let payload = vec![place.to_le_bytes()[0]; bytes].into();
        let (view, sender, client) = (1, 2, None);
        RetainedMessage {
            place,
            record: place,
            view,
            place_in_view: place,
            sender,
            client,
            payload,
        }
    }

    /// Appends a message, and returns the position after it.
    fn add(retained: &mut Retained, message: RetainedMessage) -> Position {
        let after = retained.end_position().after(&message.publish());
        retained.add(message, after.digest);
        after
    }

    fn places(retained: &Retained, from: u64, to: u64, bytes_max: usize) -> Vec<u64> {
        retained.from(from, to, bytes_max).iter().map(|message| message.place).collect()
    }

    #[test]
    fn retained_messages_are_bounded_but_never_empty() {
        let mut retained = Retained::default();
        retained.begin_at(Position { place: 7, digest: 1 });
        assert_eq!((retained.first(), retained.end()), (7, 7));
        let bytes = BYTES_MAX / 4 - MESSAGE_COST;
        for place in 7..13 {
            add(&mut retained, message(place, bytes));
        }
        assert_eq!((retained.first(), retained.end()), (9, 13));
        add(&mut retained, message(13, 1));
        assert_eq!(retained.first(), 10);
        add(&mut retained, message(14, 2 * BYTES_MAX));
        assert_eq!((retained.first(), retained.end()), (14, 15));
        add(&mut retained, message(15, 1));
        assert_eq!((retained.first(), retained.bytes), (15, 1 + MESSAGE_COST));
    }

    #[test]
    fn partial_read_is_bounded_but_never_empty() {
        let mut retained = Retained::default();
        for place in 0..5 {
            add(&mut retained, message(place, 100));
        }
        assert_eq!(places(&retained, 0, u64::MAX, usize::MAX), [0, 1, 2, 3, 4]);
        assert_eq!(places(&retained, 2, 4, usize::MAX), [2, 3]);
        assert_eq!(places(&retained, 1, u64::MAX, 2 * (100 + MESSAGE_COST)), [1, 2]);
        assert_eq!(places(&retained, 1, u64::MAX, 1), [1]);
        assert_eq!(places(&retained, 5, u64::MAX, usize::MAX), [0; 0]);
        assert_eq!(places(&retained, 3, 3, usize::MAX), [0; 0]);
    }

    /// A position is known as long as its message is kept. Of earlier positions only some are
    /// known, and each of the others follows a known one.
    #[test]
    fn every_position_is_known_or_follows_a_mark() {
        let mut retained = Retained::default();
        let begin = Position { place: 3, digest: 9 };
        retained.begin_at(begin);
        let mut all = vec![begin];
        while retained.marks.len() < 5 {
            let place = retained.end();
            all.push(add(&mut retained, message(place, MARK_BYTES / 3)));
        }
        assert_eq!(retained.known_at(2), Known::Nothing);
        assert_eq!(retained.known_at(retained.end() + 1), Known::Nothing);
        for position in &all {
            match retained.known_at(position.place) {
                Known::At(at) => assert_eq!(at, *position),
                Known::Since(mark) => {
                    assert!(position.place < retained.first() && mark.place < position.place);
                    assert!(position.place - mark.place < 3 && all.contains(&mark));
                }
                Known::Nothing => panic!("{position:?} is not known"),
            }
        }
    }

    #[test]
    fn number_of_position_marks_is_bounded() {
        let mut retained = Retained::default();
        for place in 1..=3 * MARKS_MAX as u64 {
            retained.begin = Position { place, digest: place };
            retained.mark(MARK_BYTES);
        }
        assert!(retained.marks.len() <= MARKS_MAX && retained.marks.len() > MARKS_MAX / 2);
        assert!(retained.marks.is_sorted_by_key(|mark| mark.place));
        assert_eq!(retained.known_at(0), Known::At(Position::default()));
    }
}
