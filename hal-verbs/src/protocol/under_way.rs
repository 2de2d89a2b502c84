//! Which places of the peer's copy may still change by what is under way.
//!
//! Writes whose order no device keeps must not meet in one place: the older could land last, and a
//! cell would shrink. What an update speaks for has landed, and is applied, once the peer says that
//! it took the update. Until then its places are kept here.
//!
//! # Invariant
//! There are at most as many as credits let updates go, times the writes of a list.

use std::collections::VecDeque;

use tramontane_core::fabric::WRITES_MAX;

use super::blocks::MESSAGES_MAX;

/// A processor stores whole groups of so many bytes: two places in one group meet.
const GROUP: usize = 8;

/// A place, in whole groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    start: usize,
    end: usize,
}

impl Place {
    /// Of a range that lies in memory.
    pub(crate) const fn of(offset: usize, length: usize) -> Self {
        let end = offset.saturating_add(length).saturating_add(GROUP - 1);
        Self { start: offset - offset % GROUP, end: end - end % GROUP }
    }

    pub(crate) const fn meets(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// The places of what is under way to one peer, oldest first.
#[derive(Debug)]
pub(crate) struct UnderWay(VecDeque<(u64, Place)>);

impl UnderWay {
    /// Nothing. All its memory is taken now.
    pub(crate) fn new() -> Self {
        let updates = usize::try_from(MESSAGES_MAX).unwrap_or(0);
        Self(VecDeque::with_capacity(updates * WRITES_MAX))
    }

    /// A write goes, for which the update of this number speaks.
    pub(crate) fn add(&mut self, update: u64, place: Place) {
        self.0.push_back((update, place));
    }

    /// Whether something under way may still change a place.
    pub(crate) fn meets(&self, place: Place) -> bool {
        self.0.iter().any(|(_, other)| other.meets(place))
    }

    /// The peer took so many updates.
    pub(crate) fn taken(&mut self, updates: u64) {
        while self.0.front().is_some_and(|(update, _)| *update < updates) {
            self.0.pop_front();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_meet_by_whole_groups() {
        let place = Place::of(100, 20);
        for (offset, length, meets) in
            [(120, 8, false), (119, 1, true), (88, 8, false), (96, 1, true), (0, 200, true)]
        {
            assert_eq!(place.meets(Place::of(offset, length)), meets, "{offset} {length}");
            assert_eq!(Place::of(offset, length).meets(place), meets, "{offset} {length}");
        }
    }

    #[test]
    fn a_place_is_free_once_its_update_was_taken() {
        let mut under_way = UnderWay::new();
        under_way.add(4, Place::of(0, 64));
        under_way.add(5, Place::of(64, 64));
        under_way.taken(4);
        assert!(under_way.meets(Place::of(32, 8)), "updates 0 to 3 were taken");
        under_way.taken(5);
        assert!(!under_way.meets(Place::of(32, 8)) && under_way.meets(Place::of(64, 8)));
        under_way.clear();
        assert!(!under_way.meets(Place::of(64, 8)));
    }
}
