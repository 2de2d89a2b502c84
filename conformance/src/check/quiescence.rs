//! Checks whether the protocol is quiet while no node sends.
//!
//! Lines of different nodes arrive in any order, so the sequence of events is known only at the
//! end. Activity times that are too close for a silence between them are stored as one span. The
//! number of spans is therefore limited by the number of silences that fit into the history.

use std::collections::BTreeMap;

use super::mixing::MixedTable;
use super::roster::{Roster, StartId};
use super::tally::{Tally, blames, finding, shows};

/// The silence required before the first count.
const SILENCE_NS: u64 = 500_000_000;

#[derive(Clone, Copy, Debug)]
struct Count {
    line: u64,
    t_ns: u64,
    posts: u64,
}

/// All counts, and the times of activity.
#[derive(Debug, Default)]
pub(super) struct Quiescence {
    /// Spans of activity: maps each span's first time to its last. The gaps between spans are
    /// longer than the silence.
    busy: BTreeMap<u64, u64>,
    /// The most recently used span, which receives most activity.
    recent: Option<(u64, u64)>,
    last: MixedTable<StartId, Count>,
    pairs: Vec<(StartId, Count, Count)>,
}

impl Quiescence {
    /// Notes activity at this time.
    pub(super) fn active(&mut self, t_ns: u64) {
        if !self.recent.is_some_and(|(from, to)| from <= t_ns && t_ns <= to) {
            self.widen(t_ns);
        }
    }

    fn widen(&mut self, t_ns: u64) {
        let (mut from, mut to) = (t_ns, t_ns);
        let before = self.busy.range(..=t_ns).next_back().map(|(first, last)| (*first, *last));
        if let Some((first, last)) =
            before.filter(|(_, last)| t_ns.saturating_sub(*last) <= SILENCE_NS)
        {
            (from, to) = (first, last.max(t_ns));
        }
        let after =
            self.busy.range((std::ops::Bound::Excluded(t_ns), std::ops::Bound::Unbounded)).next();
        if let Some((first, last)) =
            after.map(|(first, last)| (*first, *last)).filter(|(first, _)| first - to <= SILENCE_NS)
        {
            self.busy.remove(&first);
            to = last;
        }
        self.busy.insert(from, to);
        self.recent = Some((from, to));
    }

    /// Notes an incarnation's count of its posts.
    pub(super) fn counted(&mut self, start: StartId, line: u64, t_ns: u64, posts: u64) {
        let count = Count { line, t_ns, posts };
        if let Some(before) = self.last.insert(start, count) {
            self.pairs.push((start, before, count));
        }
    }

    /// Judges all counts.
    pub(super) fn judge(&self, roster: &Roster) -> Tally {
        let mut tally = Tally::default();
        for (start, first, second) in
            self.pairs.iter().filter(|(_, first, second)| self.is_silent(first.t_ns, second.t_ns))
        {
            tally.cases(1);
            if first.posts != second.posts {
                tally.breach(1, second.line, || {
                    let what = format!(
                        "{} counted {} posts and then {}, although nothing happened from 500 ms \
                         before the first count until the second",
                        roster.called(*start),
                        first.posts,
                        second.posts
                    );
                    finding(
                        what,
                        [
                            shows(first.line, "the count"),
                            blames(second.line, "the next count, which differs"),
                        ],
                    )
                });
            }
        }
        tally
    }

    /// Returns whether nothing happened between the two times and during one silence before the
    /// first.
    fn is_silent(&self, first_ns: u64, second_ns: u64) -> bool {
        match self.busy.range(..=second_ns).next_back() {
            // The span that begins last also ends last, because spans do not overlap.
            Some((_, last)) => last.checked_add(SILENCE_NS).is_some_and(|free| free < first_ns),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silent(activity: &[u64], first_ns: u64, second_ns: u64) -> bool {
        let mut quiescence = Quiescence::default();
        for t_ns in activity {
            quiescence.active(*t_ns);
        }
        quiescence.is_silent(first_ns, second_ns)
    }

    #[test]
    fn quiet_interval_includes_both_ends() {
        const MS: u64 = 1_000_000;
        assert!(silent(&[0], 500 * MS + 1, 900 * MS));
        assert!(!silent(&[0], 500 * MS, 900 * MS));
        assert!(!silent(&[0, 900 * MS], 501 * MS, 900 * MS));
        assert!(silent(&[0, 900 * MS + 1], 501 * MS, 900 * MS));
        assert!(
            !silent(&[0], 100 * MS, 100 * MS),
            "time before the clock's zero is silent, zero is not"
        );
        assert!(!silent(&[u64::MAX], u64::MAX, u64::MAX));
    }

    #[test]
    fn quiet_intervals_match_a_naive_search() {
        // A small generator is enough to spread times over a few seconds.
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..500 {
            let times: Vec<u64> = (0..next(8)).map(|_| next(40) * 100_000_000).collect();
            let first = next(40) * 100_000_000 + next(2);
            let second = first + next(10) * 100_000_000;
            let nothing = !times.iter().any(|t_ns| *t_ns + SILENCE_NS >= first && *t_ns <= second);
            assert_eq!(silent(&times, first, second), nothing, "{times:?} {first} {second}");
        }
    }
}
