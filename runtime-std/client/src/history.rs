//! The order that a subscriber was told, and whether a member has the same one (EXT-3): what
//! decides where it resumes, and what it is told of that.
//!
//! # Invariants
//! - The digests of the last [`RECENT_MAX`] places are kept; before those, of each [`STRIDE`]th
//!   place, [`OLDER_MAX`] at most.

use std::collections::VecDeque;

use tramontane_control::client_messages::{COMPARED_MAX, Compared, Position, PublishedMessage};

/// The last places, whose digests are all kept: 1 MiB.
const RECENT_MAX: usize = 1 << 16;

/// Of earlier places each one of so many is kept.
const STRIDE: u64 = 1 << 10;

/// The most of those: 1 MiB, for 64 million messages.
const OLDER_MAX: usize = 1 << 16;

/// What was told of an order.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// The newest view that a member was in which told of it.
    view: u64,
    older: VecDeque<Position>,
    /// The places from there on, without a gap; the last is the next.
    recent: VecDeque<Position>,
}

impl History {
    /// An order that is told from a position on, with some positions before it. Nothing if they do
    /// not rise.
    pub(crate) fn begin_at(begin: Position, earlier: Vec<Position>, view: u64) -> Option<Self> {
        let all = earlier.iter().chain([&begin]);
        let rises = all.is_sorted_by(|one, next| one.place < next.place);
        let (older, recent) = (VecDeque::from(earlier), VecDeque::from([begin]));
        (rises && older.len() <= OLDER_MAX).then_some(Self { view, older, recent })
    }

    /// The next message was told.
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

    /// A member has told in this view.
    pub(crate) fn saw_view(&mut self, view: u64) {
        self.view = self.view.max(view);
    }

    /// Where the order goes on.
    fn next(&self) -> Position {
        self.recent.back().copied().unwrap_or_default()
    }

    /// How many positions are known.
    fn len(&self) -> usize {
        self.older.len() + self.recent.len()
    }

    /// The positions that are known, from the oldest on.
    fn get(&self, index: usize) -> Position {
        let recent = || self.recent.get(index - self.older.len()).copied();
        self.older.get(index).copied().or_else(recent).unwrap_or_default()
    }

    /// The first position of this place or a later one.
    fn index_from(&self, place: u64) -> usize {
        let before = |position: &Position| position.place < place;
        self.older.partition_point(before) + self.recent.partition_point(before)
    }
}

/// Whether a member has an order that was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has; or knows nothing any more of what was told.
    Same,
    /// It has another one, from a place on.
    Changed {
        /// The first place that may be another one.
        from: u64,
    },
    /// All that it has was told; and more was, which may still come to it.
    Behind {
        /// Where its order ends.
        from: u64,
        /// All that it has is a part of what was told, in the same view: so the rest comes.
        is_same_group: bool,
    },
}

/// A search in a history for the first place that a member has otherwise.
#[derive(Debug)]
pub(crate) struct Search<'h> {
    history: &'h History,
    /// The last position that is the same.
    same: Option<usize>,
    /// Positions from here on are others.
    other: usize,
    /// Positions from here on are not there.
    beyond: usize,
    /// Of positions before this one nothing is known.
    known: usize,
    asked: Vec<usize>,
}

impl<'h> Search<'h> {
    pub(crate) fn new(history: &'h History) -> Self {
        let all = history.len();
        let asked = vec![all.saturating_sub(1)];
        Self { history, same: None, other: all, beyond: all, known: 0, asked }
    }

    /// The places to ask for.
    pub(crate) fn places(&self) -> Vec<u64> {
        self.asked.iter().map(|index| self.history.get(*index).place).collect()
    }

    /// Hears what a member has at those. Nothing if more is to be asked.
    pub(crate) fn hear(&mut self, compared: &Compared) -> Option<Verdict> {
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
        // The last one first: it may be the same, and then nothing else is asked.
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

    /// The first position of which it is open what the member has.
    fn low(&self) -> usize {
        self.known.max(self.same.map_or(0, |same| same + 1))
    }

    fn verdict(&self, view: u64, end: u64) -> Verdict {
        let all = self.history.len();
        let begin = self.history.get(0).place.min(end);
        let from = self.same.map_or(begin, |same| self.history.get(same).place);
        if self.other < all {
            return Verdict::Changed { from };
        }
        if self.beyond >= all {
            return Verdict::Same;
        }
        // All that was delivered in a view is there in the next one.
        if view > self.history.view {
            return Verdict::Changed { from };
        }
        // Not by an earlier place alone: orders may differ after that.
        let has_all = self.same.is_some() && from == end && from > 0;
        let is_same_group = view == self.history.view && has_all;
        Verdict::Behind { from, is_same_group }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tramontane_control::client_messages::Bytes;

    use super::*;

    /// A member, whose order is numbers.
    struct OrderModel {
        positions: Vec<Position>,
        view: u64,
        /// The first place that it knows of.
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

    fn told(numbers: &[u8], begin: Position) -> History {
        let mut history = History::begin_at(begin, Vec::new(), 1).expect("it rises");
        numbers.iter().for_each(|number| history.add(&message(number)));
        history
    }

    /// The verdict, and how often the member was asked.
    fn judge(history: &History, member: &OrderModel) -> (Verdict, usize) {
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
        /// The place is the first that differs, whatever orders there are, if all is known.
        #[test]
        fn first_changed_place_is_exact(
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
                prop_assert_eq!(verdict, Verdict::Same);
            } else if new.len() > common.len() || view > 2 {
                prop_assert_eq!(verdict, Verdict::Changed { from });
            } else {
                let is_same_group = view == 2 && from > 0;
                prop_assert_eq!(verdict, Verdict::Behind { from, is_same_group });
            }
            // A member that knows only the last of its places is never taken for one that has the
            // order, and the place that it leads to is not too late.
            let member = OrderModel { first, ..member };
            match judge(&history, &member).0 {
                Verdict::Changed { from: at } | Verdict::Behind { from: at, .. } => {
                    prop_assert!(!was.is_empty() && at <= from);
                }
                Verdict::Same => prop_assert!(was.is_empty() || first > old.len() as u64),
            }
        }
    }

    /// One that has been told nothing yet, at a group that begins anew with less than it had.
    #[test]
    fn shorter_order_is_told_apart_by_earlier_positions() {
        let old = OrderModel::of(&[1; 50], 2, 0);
        let earlier = vec![old.positions[0], old.positions[2], old.positions[34]];
        let history = History::begin_at(old.end(), earlier, 2).expect("they rise");
        let changed = |from| (Verdict::Changed { from }, 2);
        assert_eq!(judge(&history, &OrderModel::of(&[2; 5], 1, 0)), changed(0));
        // Of what it has after place 2 nothing is known: it may be another group.
        let forked = OrderModel::of(&[[1; 3], [2; 3]].concat(), 2, 0);
        let behind = Verdict::Behind { from: 2, is_same_group: false };
        assert_eq!(judge(&history, &forked).0, behind);
        let positions = vec![old.positions[2], old.positions[1]];
        assert!(History::begin_at(old.end(), positions, 2).is_none());
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
            assert_eq!(verdict, Verdict::Changed { from }, "{changed}");
            assert!(rounds <= 5, "{rounds} rounds");
        }
        assert_eq!(judge(&history, &OrderModel::of(&numbers, 9, 0)), (Verdict::Same, 1));
    }
}
