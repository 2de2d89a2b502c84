//! The last messages of a subgroup, which subscribers are sent from: one copy for all of them.
//!
//! # Invariants
//! - It holds at most [`BYTES_MAX`], or one message: a subscriber that is further behind is cut,
//!   and never waited for.

use std::collections::VecDeque;

use tramontane_control::client_messages::{Bytes, ClientId, PublishedMessage};

/// The most bytes that are kept.
pub(super) const BYTES_MAX: usize = 16 << 20;

/// What one message costs beside its bytes.
const MESSAGE_COST: usize = 64;

/// A message that was handed over to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivered {
    pub(super) place: u64,
    /// Its number in a log, if there is one.
    pub(super) record: u64,
    pub(super) view: u64,
    pub(super) place_in_view: u64,
    pub(super) sender: u32,
    pub(super) client: Option<ClientId>,
    pub(super) payload: Box<[u8]>,
}

impl Delivered {
    /// The message as a subscriber gets it.
    pub(super) fn publish(&self) -> PublishedMessage<'_> {
        let Self { place, view, place_in_view, sender, client, ref payload, .. } = *self;
        let payload = Bytes(payload);
        PublishedMessage { place, view, place_in_view, sender, client, payload }
    }

    fn cost(&self) -> usize {
        self.payload.len() + MESSAGE_COST
    }
}

/// The last messages, whose places go on without a gap.
#[derive(Debug, Default)]
pub(super) struct Retained {
    messages: VecDeque<Delivered>,
    bytes: usize,
    /// The place after the last.
    end: u64,
}

impl Retained {
    /// Nothing is kept of what came before this place.
    pub(super) fn begin_at(&mut self, place: u64) {
        *self = Self { end: place, ..Self::default() };
    }

    /// Keeps a message, whose place is the end.
    pub(super) fn add(&mut self, message: Delivered) {
        self.end = message.place.saturating_add(1);
        self.bytes += message.cost();
        self.messages.push_back(message);
        while self.bytes > BYTES_MAX && self.messages.len() > 1 {
            self.bytes -= self.messages.pop_front().map_or(0, |first| first.cost());
        }
    }

    /// The first place that is kept, or else the next.
    pub(super) fn first(&self) -> u64 {
        self.messages.front().map_or(self.end, |first| first.place)
    }

    /// The place after the last.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Messages from a place on, up to another one and to so many bytes, but one at least.
    pub(super) fn from(&self, place: u64, to: u64, bytes_max: usize) -> Vec<PublishedMessage<'_>> {
        let skipped = usize::try_from(place.saturating_sub(self.first())).unwrap_or(usize::MAX);
        let mut bytes = 0_usize;
        let fits = |message: &&Delivered| {
            let is_first = bytes == 0;
            bytes += message.cost();
            message.place < to && (is_first || bytes <= bytes_max)
        };
        let here = self.messages.range(skipped.min(self.messages.len())..);
        here.take_while(fits).map(Delivered::publish).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(place: u64, bytes: usize) -> Delivered {
        let payload = vec![place.to_le_bytes()[0]; bytes].into();
        let (view, sender, client) = (1, 2, None);
        Delivered { place, record: place, view, place_in_view: place, sender, client, payload }
    }

    fn places(retained: &Retained, from: u64, to: u64, bytes_max: usize) -> Vec<u64> {
        retained.from(from, to, bytes_max).iter().map(|message| message.place).collect()
    }

    #[test]
    fn the_last_messages_are_kept_up_to_the_bound_and_one_that_is_larger() {
        let mut retained = Retained::default();
        retained.begin_at(7);
        assert_eq!((retained.first(), retained.end()), (7, 7));
        let bytes = BYTES_MAX / 4 - MESSAGE_COST;
        (7..13).for_each(|place| retained.add(message(place, bytes)));
        assert_eq!((retained.first(), retained.end()), (9, 13));
        retained.add(message(13, 1));
        assert_eq!(retained.first(), 10);
        retained.add(message(14, 2 * BYTES_MAX));
        assert_eq!((retained.first(), retained.end()), (14, 15));
        retained.add(message(15, 1));
        assert_eq!((retained.first(), retained.bytes), (15, 1 + MESSAGE_COST));
    }

    #[test]
    fn a_part_has_its_bounds_and_never_nothing_where_there_is_something() {
        let mut retained = Retained::default();
        (0..5).for_each(|place| retained.add(message(place, 100)));
        assert_eq!(places(&retained, 0, u64::MAX, usize::MAX), [0, 1, 2, 3, 4]);
        assert_eq!(places(&retained, 2, 4, usize::MAX), [2, 3]);
        assert_eq!(places(&retained, 1, u64::MAX, 2 * (100 + MESSAGE_COST)), [1, 2]);
        assert_eq!(places(&retained, 1, u64::MAX, 1), [1]);
        assert_eq!(places(&retained, 5, u64::MAX, usize::MAX), [0; 0]);
        assert_eq!(places(&retained, 3, 3, usize::MAX), [0; 0]);
    }
}
