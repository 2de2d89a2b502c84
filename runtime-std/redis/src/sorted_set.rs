//! Members in the order of their scores.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::text::Text;

/// A score, which is never NaN. Minus zero equals zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Score(pub(crate) f64);

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}

/// A set whose members have scores. Members with equal scores are in the order of their bytes.
///
/// Only the scores travel in snapshots; the order is built again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Text, f64>", into = "BTreeMap<Text, f64>")]
pub(crate) struct SortedSet {
    scores: BTreeMap<Text, f64>,
    order: BTreeSet<(Score, Text)>,
}

impl SortedSet {
    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    /// Sets a member's score, and returns the previous one.
    pub(crate) fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let member = Text::from(member);
        let previous = self.scores.insert(member.clone(), score);
        if let Some(previous) = previous {
            if previous == score {
                return Some(previous);
            }
            self.order.remove(&(Score(previous), member.clone()));
        }
        self.order.insert((Score(score), member));
        previous
    }

    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let Some((member, score)) = self.scores.remove_entry(member) else { return false };
        self.order.remove(&(Score(score), member))
    }

    /// Returns all members and their scores, in order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&Text, f64)> {
        self.order.iter().map(|(score, member)| (member, score.0))
    }

    /// Returns the members from a score on, in order.
    pub(crate) fn members_from(&self, least: f64) -> impl DoubleEndedIterator<Item = (&Text, f64)> {
        let from = (Score(least), Text::default());
        self.order.range(from..).map(|(score, member)| (member, score.0))
    }

    /// Returns the number of members before this one. Takes time in proportion to it.
    pub(crate) fn rank(&self, member: &[u8]) -> Option<usize> {
        let score = self.score(member)?;
        Some(self.order.range(..(Score(score), Text::from(member))).count())
    }
}

impl From<BTreeMap<Text, f64>> for SortedSet {
    fn from(scores: BTreeMap<Text, f64>) -> Self {
        let order = scores.iter().map(|(member, score)| (Score(*score), member.clone())).collect();
        Self { scores, order }
    }
}

impl From<SortedSet> for BTreeMap<Text, f64> {
    fn from(set: SortedSet) -> Self {
        set.scores
    }
}
