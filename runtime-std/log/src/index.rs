//! The index of records: one entry per batch, in the order of sequences.
//!
//! # Invariants
//! - Entries do not overlap, and sequences in a gap between two entries are damaged.
//! - If the first sequence of a batch is before the end, existing records with this and later
//!   sequences are void. So a cut takes effect even if the batch that announces it is damaged.

use std::collections::{BTreeMap, VecDeque};

use crate::mark::Mark;
use crate::record::Sequence;

/// A batch and its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchPlace {
    pub(crate) segment: u64,
    pub(crate) mark: Mark,
}

/// The location of damaged records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadPlace {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// A batch with records of the log: some or all of its records, from the first one up to, but
/// excluding, the end.
#[derive(Clone, Copy, Debug)]
struct IndexEntry {
    end: Sequence,
    place: BatchPlace,
}

/// All entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// First record that is served.
    base: Sequence,
    end: Sequence,
    entries: VecDeque<IndexEntry>,
    /// Damaged records: the first record of each range, and the range's end.
    bad: BTreeMap<Sequence, (Sequence, BadPlace)>,
    /// Damaged records that have been replaced, with the repair batch that contains them.
    repaired: BTreeMap<Sequence, BatchPlace>,
}

impl Index {
    /// Creates an empty index that continues at that sequence.
    pub(crate) fn starting_at(base: Sequence) -> Self {
        Self { base, end: base, ..Self::default() }
    }

    pub(crate) fn first(&self) -> Sequence {
        self.base
    }

    pub(crate) fn end(&self) -> Sequence {
        self.end
    }

    /// Sets the beginning of the first segment, which may be before the first served record.
    pub(crate) fn begin_at(&mut self, first: Sequence) {
        self.end = first;
    }

    /// Continues the log at that sequence: existing records at or after it become void, and missing
    /// ones before it count as damaged at that location.
    pub(crate) fn go_on_at(&mut self, next: Sequence, place: BadPlace) {
        self.cut(next);
        if next > self.end {
            self.mark_bad(self.end, next, place);
            self.end = next;
        }
    }

    /// Adds a batch of records.
    pub(crate) fn add(&mut self, place: BatchPlace) {
        let missing = BadPlace { segment: place.segment, offset: place.mark.start };
        self.go_on_at(place.mark.first, missing);
        self.end = place.mark.next();
        self.entries.push_back(IndexEntry { end: self.end, place });
    }

    /// Makes all existing records from a sequence onwards void.
    pub(crate) fn cut(&mut self, next: Sequence) {
        if next >= self.end {
            return;
        }
        while self.entries.back().is_some_and(|entry| entry.place.mark.first >= next) {
            self.entries.pop_back();
        }
        if let Some(last) = self.entries.back_mut() {
            last.end = last.end.min(next);
        }
        self.bad.split_off(&next);
        if let Some(mut last) = self.bad.last_entry() {
            last.get_mut().0 = last.get().0.min(next);
        }
        self.repaired.split_off(&next);
        self.end = next;
    }

    /// Marks records as damaged. Records before the base are ignored.
    pub(crate) fn mark_bad(&mut self, first: Sequence, end: Sequence, place: BadPlace) {
        let first = first.max(self.base);
        let mut at = first;
        // Known ranges keep their locations.
        while at < end {
            let known = self.bad_range(at).map(|(_, end, _)| end);
            let next = self.bad.range(at..).next().map_or(end, |(next, _)| (*next).min(end));
            match known {
                Some(known) => at = known,
                None => {
                    self.bad.insert(at, (next, place));
                    at = next;
                }
            }
        }
    }

    /// Replaces damaged records with the intact copies in a repair.
    pub(crate) fn repair(&mut self, sequences: &[Sequence], place: BatchPlace) {
        for sequence in sequences {
            let Some((first, end, bad)) = self.bad_range(*sequence) else { continue };
            self.bad.remove(&first);
            if first < *sequence {
                self.bad.insert(first, (*sequence, bad));
            }
            if sequence.plus(1) < end {
                self.bad.insert(sequence.plus(1), (end, bad));
            }
            self.repaired.insert(*sequence, place);
        }
    }

    /// Returns the range of damaged records that contains a sequence.
    pub(crate) fn bad_range(&self, sequence: Sequence) -> Option<(Sequence, Sequence, BadPlace)> {
        let (first, (end, place)) = self.bad.range(..=sequence).next_back()?;
        (sequence < *end).then_some((*first, *end, *place))
    }

    /// Returns all ranges of damaged records, in order.
    pub(crate) fn bad(&self) -> impl Iterator<Item = (Sequence, Sequence, BadPlace)> + '_ {
        self.bad.iter().map(|(first, (end, place))| (*first, *end, *place))
    }

    /// Returns the batch that contains a record, and the sequence after the batch's last valid
    /// record.
    pub(crate) fn find(&self, sequence: Sequence) -> Option<(BatchPlace, Sequence)> {
        if let Some(place) = self.repaired.get(&sequence) {
            return Some((*place, sequence.plus(1)));
        }
        let after = self.entries.partition_point(|entry| entry.place.mark.first <= sequence);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        (sequence < entry.end).then_some((entry.place, entry.end))
    }

    /// Returns the total size in bytes of the batches that begin at or after a sequence.
    pub(crate) fn bytes_from(&self, sequence: Sequence) -> u64 {
        let behind =
            self.entries.iter().rev().take_while(|entry| entry.place.mark.first >= sequence);
        behind.map(|entry| entry.place.mark.length).sum()
    }

    /// Stops serving records before that sequence.
    pub(crate) fn let_go(&mut self, base: Sequence) {
        self.base = base;
        while self.entries.front().is_some_and(|entry| entry.end <= base) {
            self.entries.pop_front();
        }
        let rest = self.bad.split_off(&base);
        let last = self.bad.pop_last().filter(|(_, (end, _))| *end > base);
        self.bad = rest;
        self.bad.extend(last.map(|(_, range)| (base, range)));
        self.repaired = self.repaired.split_off(&base);
        self.end = self.end.max(base);
    }

    /// Returns the first segment with data that is still served.
    pub(crate) fn first_segment(&self) -> Option<u64> {
        let entries = self.entries.front().map(|entry| entry.place.segment);
        let repairs = self.repaired.values().map(|place| place.segment).min();
        entries.into_iter().chain(repairs).chain(self.bad().map(|(_, _, bad)| bad.segment)).min()
    }
}

#[cfg(test)]
mod tests {
    use tramontane_core::ids::ViewId;

    use super::*;
    use crate::mark::BatchKind;

    const BAD: BadPlace = BadPlace { segment: 0, offset: 9 };

    fn place(start: u64, first: u64, count: u64) -> BatchPlace {
        let (kind, first, view) = (BatchKind::Records, Sequence(first), ViewId(1));
        let mark = Mark { kind, incarnation: 1, start, length: 4096, first, view, count };
        BatchPlace { segment: start / 10, mark }
    }

    fn found(index: &Index, sequence: u64) -> Option<u64> {
        index.find(Sequence(sequence)).map(|(place, _)| place.mark.start)
    }

    #[test]
    fn records_are_found_in_their_batch() {
        let mut index = Index::starting_at(Sequence(10));
        index.add(place(1, 10, 3));
        index.add(place(2, 13, 1));
        assert_eq!(
            [9, 10, 12, 13, 14].map(|at| found(&index, at)),
            [None, Some(1), Some(1), Some(2), None]
        );
        assert_eq!(index.end(), Sequence(14));
    }

    #[test]
    fn overlapping_batch_replaces_earlier_records() {
        let mut index = Index::starting_at(Sequence(0));
        index.add(place(1, 0, 4));
        index.add(place(2, 4, 4));
        index.add(place(3, 2, 1));
        assert_eq!([1, 2, 3].map(|at| found(&index, at)), [Some(1), Some(3), None]);
        assert_eq!(index.end(), Sequence(3));
        assert_eq!(index.bad().count(), 0);
    }

    #[test]
    fn gap_between_batches_counts_as_damage() {
        let mut index = Index::starting_at(Sequence(0));
        index.add(place(1, 0, 2));
        index.add(place(2, 6, 2));
        let range = |index: &Index| index.bad().map(|bad| (bad.0.0, bad.1.0)).collect::<Vec<_>>();
        assert_eq!(range(&index), [(2, 6)]);
        index.repair(&[Sequence(3)], place(5, 3, 1));
        assert_eq!(range(&index), [(2, 3), (4, 6)]);
        assert_eq!((found(&index, 3), found(&index, 4)), (Some(5), None));
        index.mark_bad(Sequence(0), Sequence(8), BAD);
        assert_eq!(range(&index), [(0, 2), (2, 3), (3, 4), (4, 6), (6, 8)]);
        index.cut(Sequence(5));
        assert_eq!(range(&index), [(0, 2), (2, 3), (3, 4), (4, 5)]);
        index.let_go(Sequence(1));
        assert_eq!(range(&index), [(1, 2), (2, 3), (3, 4), (4, 5)]);
    }

    #[test]
    fn only_discarded_records_are_forgotten() {
        let mut index = Index::starting_at(Sequence(0));
        for number in 0..5 {
            index.add(place(10 * number, 3 * number, 3));
        }
        index.let_go(Sequence(7));
        assert_eq!((index.first(), index.first_segment()), (Sequence(7), Some(2)));
        assert_eq!([5, 6, 7].map(|at| found(&index, at)), [None, Some(20), Some(20)]);
        index.let_go(Sequence(20));
        assert_eq!((index.first_segment(), index.end()), (None, Sequence(20)));
    }
}
