//! The ranges, in the peer's copy of a row, that requests in flight may still change.
//!
//! If devices keep no order, writes in flight must not overlap: the older one could land last, and
//! a cell would appear to shrink. A write that is covered by an update has landed and is applied
//! once the peer reports that it has processed the update. Until then, the write's range is kept
//! here.
//!
//! # Invariant
//! The number of ranges is bounded by the number of updates that credits allow, times the number of
//! writes in a list.

use std::collections::VecDeque;

use tramontane_core::fabric::WRITES_MAX;

use super::blocks::MESSAGES_MAX;

/// A processor stores whole groups of bytes of this size, so two ranges in one group overlap.
const GROUP: usize = 8;

/// A range of memory, extended to whole groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WholeGroups {
    start: usize,
    end: usize,
}

impl WholeGroups {
    /// Returns the groups that contain a range of memory.
    pub(crate) const fn of(offset: usize, length: usize) -> Self {
        let end = offset.saturating_add(length).saturating_add(GROUP - 1);
        Self { start: offset - offset % GROUP, end: end - end % GROUP }
    }

    pub(crate) const fn meets(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// The ranges that requests in flight to one peer may change, oldest first.
#[derive(Debug)]
pub(crate) struct UnderWay(VecDeque<(u64, WholeGroups)>);

impl UnderWay {
    /// Creates an empty list and allocates all its memory.
    pub(crate) fn new() -> Self {
        let updates = usize::try_from(MESSAGES_MAX).unwrap_or(0);
        Self(VecDeque::with_capacity(updates * WRITES_MAX))
    }

    /// Adds a write that the update with this number covers.
    pub(crate) fn add(&mut self, update: u64, place: WholeGroups) {
        self.0.push_back((update, place));
    }

    /// Returns whether a request in flight may still change a range.
    pub(crate) fn meets(&self, place: WholeGroups) -> bool {
        self.0.iter().any(|(_, other)| other.meets(place))
    }

    /// Records that the peer has processed this many updates.
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
    fn range_overlap_is_judged_by_eight_byte_groups() {
        let place = WholeGroups::of(100, 20);
        for (offset, length, meets) in
            [(120, 8, false), (119, 1, true), (88, 8, false), (96, 1, true), (0, 200, true)]
        {
            assert_eq!(place.meets(WholeGroups::of(offset, length)), meets, "{offset} {length}");
            assert_eq!(WholeGroups::of(offset, length).meets(place), meets, "{offset} {length}");
        }
    }

    #[test]
    fn range_is_free_after_its_update_arrives() {
        let mut under_way = UnderWay::new();
        under_way.add(4, WholeGroups::of(0, 64));
        under_way.add(5, WholeGroups::of(64, 64));
        under_way.taken(4);
        assert!(under_way.meets(WholeGroups::of(32, 8)), "updates 0 to 3 were taken");
        under_way.taken(5);
        assert!(
            !under_way.meets(WholeGroups::of(32, 8)) && under_way.meets(WholeGroups::of(64, 8))
        );
        under_way.clear();
        assert!(!under_way.meets(WholeGroups::of(64, 8)));
    }
}
