//! The order that a subscriber has received, and the comparison of that order with a member's
//! (EXT-3). The result decides the position at which the subscriber resumes, and the events that
//! report it.
//!
//! # Invariants
//! - The digests of the last [`RECENT_MAX`] positions are kept. Of earlier positions, the digest of
//!   every [`STRIDE`]th is kept, up to [`OLDER_MAX`] of them.

use std::collections::VecDeque;

use tramontane_control::client_messages::{COMPARED_MAX, Compared, Position, PublishedMessage};

/// The number of recent positions whose digests are all kept: 1 MiB.
const RECENT_MAX: usize = 1 << 16;

/// The distance between the earlier positions that are kept.
const STRIDE: u64 = 1 << 10;

/// The maximum number of earlier positions kept: 1 MiB, enough for 64 million messages.
const OLDER_MAX: usize = 1 << 16;

/// The received part of an order, and what is known of earlier positions.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedOrder {
    /// The newest view of any member that sent a part of the order.
    view: u64,
    older: VecDeque<Position>,
    /// The recent positions, without a gap. The last one is the next position to be received.
    recent: VecDeque<Position>,
}

impl ReceivedOrder {
    /// Returns an order that begins at a position, with some earlier positions. Returns `None` if
    /// they are not in ascending order.
    pub(crate) fn begin_at(begin: Position, earlier: Vec<Position>, view: u64) -> Option<Self> {
        let all = earlier.iter().chain([&begin]);
        let rises = all.is_sorted_by(|one, next| one.place < next.place);
        let (older, recent) = (VecDeque::from(earlier), VecDeque::from([begin]));
        (rises && older.len() <= OLDER_MAX).then_some(Self { view, older, recent })
    }

    /// Adds the next received message.
    pub(crate) fn add(&mut self, message: &PublishedMessage<'_>) {
        self.saw_view(message.view);
        self.recent.push_back(self.next().after(message));
        if self.recent.len() > RECENT_MAX
            && let Some(first) = self.recent.pop_front()
            && (first.place.is_multiple_of(STRIDE) || self.older.is_empty())
        {
            self.older.push_back(first);
            if self.older.len() > OLDER_MAX {
                self.older.pop_front();
            }
        }
    }

    /// Records that a member in this view has sent part of the order.
    pub(crate) fn saw_view(&mut self, view: u64) {
        self.view = self.view.max(view);
    }

    /// Returns the next position to be received.
    fn next(&self) -> Position {
        self.recent.back().copied().unwrap_or_default()
    }

    /// Returns the number of known positions.
    fn len(&self) -> usize {
        self.older.len() + self.recent.len()
    }

    /// Returns a known position by its index, counted from the oldest.
    fn get(&self, index: usize) -> Position {
        let recent = || self.recent.get(index - self.older.len()).copied();
        self.older.get(index).copied().or_else(recent).unwrap_or_default()
    }

    /// Returns the index of the first position at or after this place.
    fn index_from(&self, place: u64) -> usize {
        let before = |position: &Position| position.place < place;
        self.older.partition_point(before) + self.recent.partition_point(before)
    }
}

/// The result of comparing a member's order with the one received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderComparison {
    /// The member has the same order, or no longer knows any of the received positions.
    Same,
    /// The member's order differs, starting at some position.
    Changed {
        /// The first position that may differ.
        from: u64,
    },
    /// The member has received less than this subscriber, but the rest may still reach it.
    Behind {
        /// The end of the member's order.
        from: u64,
        /// Whether the member's order is a prefix of the received one in the same view, so that the
        /// rest will reach the member.
        is_same_group: bool,
    },
}

/// A search in a history for the first position at which a member differs.
#[derive(Debug)]
pub(crate) struct Search<'h> {
    history: &'h ReceivedOrder,
    /// The last position known to be equal.
    same: Option<usize>,
    /// The first position known to differ. All later ones differ too.
    other: usize,
    /// The first position that the member does not have yet.
    beyond: usize,
    /// The first position about which the member knows anything.
    known: usize,
    asked: Vec<usize>,
}

impl<'h> Search<'h> {
    pub(crate) fn new(history: &'h ReceivedOrder) -> Self {
        let all = history.len();
        let asked = vec![all.saturating_sub(1)];
        Self { history, same: None, other: all, beyond: all, known: 0, asked }
    }

    /// Returns the positions about which the member must be asked.
    pub(crate) fn places(&self) -> Vec<u64> {
        self.asked.iter().map(|index| self.history.get(*index).place).collect()
    }

    /// Takes a member's digests at those positions. Returns `None` if more are needed.
    pub(crate) fn hear(&mut self, compared: &Compared) -> Option<OrderComparison> {
        let Compared { view, end, ref digests } = *compared;
        self.beyond = self.history.index_from(end.place.saturating_add(1));
        for (index, digest) in std::mem::take(&mut self.asked).into_iter().zip(digests) {
            self.note(index, *digest);
        }
        if let Some(last) = self.beyond.checked_sub(1)
            && self.history.get(last).place == end.place
        {
            self.note(last, Some(end.digest));
        }
        let (low, high) = (self.low(), self.other.min(self.beyond));
        if high <= low {
            return Some(self.verdict(view, end.place));
        }
        let (count, most) = (high - low, COMPARED_MAX);
        let step = count.div_ceil(most);
        // The last position is asked about first: if it is equal, no further request is needed.
        self.asked = (low..high).rev().step_by(step).collect();
        None
    }

    fn note(&mut self, index: usize, digest: Option<u64>) {
        match digest {
            Some(digest) if digest == self.history.get(index).digest => {
                self.same = self.same.max(Some(index));
            }
            Some(_) => self.other = self.other.min(index),
            None if index < self.beyond => self.known = self.known.max(index + 1),
            None => {}
        }
    }

    /// Returns the first position that has not been compared yet.
    fn low(&self) -> usize {
        self.known.max(self.same.map_or(0, |same| same + 1))
    }

    fn verdict(&self, view: u64, end: u64) -> OrderComparison {
        let all = self.history.len();
        let begin = self.history.get(0).place.min(end);
        let from = self.same.map_or(begin, |same| self.history.get(same).place);
        if self.other < all {
            return OrderComparison::Changed { from };
        }
        if self.beyond >= all {
            return OrderComparison::Same;
        }
        // The history's view is older, but a message that was delivered in one view is also present
        // in the next.
        if view > self.history.view {
            return OrderComparison::Changed { from };
        }
        // An equal earlier position is not enough, because the orders may differ after it.
        let has_all = self.same.is_some() && from == end && from > 0;
        let is_same_group = view == self.history.view && has_all;
        OrderComparison::Behind { from, is_same_group }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tramontane_control::client_messages::Bytes;

    use super::*;

    /// A member whose order consists of numbers.
    struct OrderModel {
        positions: Vec<Position>,
        view: u64,
        /// The first position that the member knows.
        first: u64,
    }

    fn message(number: &u8) -> PublishedMessage<'_> {
        let payload = Bytes(std::slice::from_ref(number));
        PublishedMessage { place: 0, view: 2, place_in_view: 0, sender: 0, client: None, payload }
    }

    impl OrderModel {
        fn of(numbers: &[u8], view: u64, first: u64) -> Self {
            let mut positions = vec![Position::default()];
            for number in numbers {
                positions.push(positions[positions.len() - 1].after(&message(number)));
            }
            Self { positions, view, first }
        }

        fn end(&self) -> Position {
            self.positions[self.positions.len() - 1]
        }

        fn compare(&self, places: &[u64]) -> Compared {
            let digest = |place: &u64| {
                let found = self.positions.iter().find(|position| position.place == *place);
                found.filter(|position| position.place >= self.first).map(|found| found.digest)
            };
            let digests = places.iter().map(digest).collect();
            Compared { view: self.view, end: self.end(), digests }
        }
    }

    fn told(numbers: &[u8], begin: Position) -> ReceivedOrder {
        let mut history = ReceivedOrder::begin_at(begin, Vec::new(), 1).expect("it rises");
        numbers.iter().for_each(|number| history.add(&message(number)));
        history
    }

    /// Returns the verdict, and the number of requests to the member.
    fn judge(history: &ReceivedOrder, member: &OrderModel) -> (OrderComparison, usize) {
        let mut search = Search::new(history);
        for round in 1..10 {
            let places = search.places();
            assert!(!places.is_empty() && places.len() <= COMPARED_MAX);
            if let Some(verdict) = search.hear(&member.compare(&places)) {
                return (verdict, round);
            }
        }
        panic!("the search does not end")
    }

    proptest! {
        /// If the member knows all positions of the history, the position found is the first that
        /// differs, whatever the orders are.
        #[test]
        fn first_changed_position_is_found_exactly(
            common in prop::collection::vec(any::<u8>(), 0..300),
            was in prop::collection::vec(0..9_u8, 0..300),
            is in prop::collection::vec(9..19_u8, 0..300),
            begin in 0..300_usize, first in 0..600_u64, view in 1..4_u64,
        ) {
            let old = [common.clone(), was.clone()].concat();
            let new = [common.clone(), is].concat();
            let member = OrderModel::of(&new, view, 0);
            let begin = begin.min(common.len());
            let history = told(&old[begin..], OrderModel::of(&old[..begin], 1, 0).end());
            let from = common.len() as u64;
            let (verdict, _) = judge(&history, &member);
            if was.is_empty() {
                prop_assert_eq!(verdict, OrderComparison::Same);
            } else if new.len() > common.len() || view > 2 {
                prop_assert_eq!(verdict, OrderComparison::Changed { from });
            } else {
                let is_same_group = view == 2 && from > 0;
                prop_assert_eq!(verdict, OrderComparison::Behind { from, is_same_group });
            }
            // A member that knows only recent positions is never mistaken for one with the same
            // order, and the resulting position is not too late.
            let member = OrderModel { first, ..member };
            match judge(&history, &member).0 {
                OrderComparison::Changed { from: at }
                | OrderComparison::Behind { from: at, .. } => {
                    prop_assert!(!was.is_empty() && at <= from);
                }
                OrderComparison::Same => prop_assert!(was.is_empty() || first > old.len() as u64),
            }
        }
    }

    /// A subscriber that has not received anything yet connects to a re-formed group whose order is
    /// shorter.
    #[test]
    fn shorter_order_is_recognised_by_earlier_positions() {
        let old = OrderModel::of(&[1; 50], 2, 0);
        let earlier = vec![old.positions[0], old.positions[2], old.positions[34]];
        let history = ReceivedOrder::begin_at(old.end(), earlier, 2).expect("they rise");
        let changed = |from| (OrderComparison::Changed { from }, 2);
        assert_eq!(judge(&history, &OrderModel::of(&[2; 5], 1, 0)), changed(0));
        // The messages after position 2 are unknown, so this may be a different group.
        let forked = OrderModel::of(&[[1; 3], [2; 3]].concat(), 2, 0);
        let behind = OrderComparison::Behind { from: 2, is_same_group: false };
        assert_eq!(judge(&history, &forked).0, behind);
        let positions = vec![old.positions[2], old.positions[1]];
        assert!(ReceivedOrder::begin_at(old.end(), positions, 2).is_none());
    }

    #[test]
    fn long_histories_are_searched_in_few_rounds() {
        let numbers: Vec<u8> = (0..RECENT_MAX + 5_000).map(|at| at.to_le_bytes()[0]).collect();
        let history = told(&numbers, Position::default());
        assert_eq!((history.older.len(), history.recent.len()), (5, RECENT_MAX));
        for changed in [0, 1, 1_023, 1_024, 4_999, 5_000, 5_001, 40_000, numbers.len() - 1] {
            let mut other = numbers.clone();
            other[changed] ^= 1;
            let (verdict, rounds) = judge(&history, &OrderModel::of(&other, 2, 0));
            let exact = changed as u64;
            let first_recent = history.recent[0].place;
            let from = if exact >= first_recent { exact } else { exact / STRIDE * STRIDE };
            assert_eq!(verdict, OrderComparison::Changed { from }, "{changed}");
            assert!(rounds <= 5, "{rounds} rounds");
        }
        assert_eq!(judge(&history, &OrderModel::of(&numbers, 9, 0)), (OrderComparison::Same, 1));
    }
}
