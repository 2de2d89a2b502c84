//! The log records that are client control messages. Sequence positions count messages only,
//! whereas a log counts both.
//!
//! # Invariants
//! - For a record before the first known one, the result never counts too many messages.

use std::collections::VecDeque;

/// The maximum number of control messages that are stored individually.
const KEPT_MAX: usize = 1 << 20;

/// The control messages of one subgroup, as far back as this process knows them.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// The number of records before `later`, and the number of control messages among them.
    records_before: u64,
    words_before: u64,
    /// The record numbers of control messages, in ascending order.
    later: VecDeque<u64>,
}

impl Words {
    /// Starts after `records` records, `words` of which are control messages.
    pub(crate) fn begin_at(&mut self, records: u64, words: u64) {
        *self = Self { records_before: records, words_before: words, later: VecDeque::new() };
    }

    /// Adds the record number of a control message.
    pub(crate) fn add(&mut self, record: u64) {
        self.later.push_back(record);
        if self.later.len() > KEPT_MAX
            && let Some(first) = self.later.pop_front()
        {
            self.records_before = first.saturating_add(1);
            self.words_before = self.words_before.saturating_add(1);
        }
    }

    /// Returns the first record that is known.
    pub(crate) const fn first_known(&self) -> u64 {
        self.records_before
    }

    /// Returns the number of messages among the first `records` records.
    pub(crate) fn messages_among(&self, records: u64) -> u64 {
        let later = self.later.partition_point(|word| *word < records);
        let words = self.words_before.saturating_add(count(later));
        records.saturating_sub(words)
    }

    /// Returns the record of the message at a sequence position, or `None` if the position is
    /// before the first known one.
    pub(crate) fn record_of(&self, place: u64) -> Option<u64> {
        let places_before = self.records_before.saturating_sub(self.words_before);
        if place < places_before {
            return None;
        }
        // Binary search for the number of control messages that precede the message: those preceded
        // by at most as many messages as the message itself.
        let (mut low, mut high) = (0, self.later.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let words = self.words_before.saturating_add(count(middle));
            let messages = self.later.get(middle).map_or(0, |word| word.saturating_sub(words));
            if messages <= place { low = middle + 1 } else { high = middle }
        }
        Some(place.saturating_add(self.words_before).saturating_add(count(low)))
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a linear search through all records, from any start.
        #[test]
        fn message_positions_map_to_records_and_back(
            records in prop::collection::vec(any::<bool>(), 0..80), known in 0..80_usize,
        ) {
            let known = known.min(records.len());
            let mut words = Words::default();
            let before = records[..known].iter().filter(|is_word| **is_word).count();
            words.begin_at(count(known), count(before));
            let later = records.iter().enumerate().skip(known).filter(|(_, is_word)| **is_word);
            later.for_each(|(record, _)| words.add(count(record)));
            let mut place = 0;
            for (record, is_word) in records.iter().enumerate() {
                let said = words.messages_among(count(record));
                let is_right = if record < known { said <= place } else { said == place };
                prop_assert!(is_right);
                if !is_word {
                    let wanted = (record >= known).then_some(count(record));
                    prop_assert_eq!(words.record_of(place), wanted);
                    place += 1;
                }
            }
            prop_assert_eq!(words.messages_among(count(records.len())), place);
        }
    }

    #[test]
    fn number_of_kept_control_messages_is_bounded() {
        let mut words = Words::default();
        (0..count(KEPT_MAX) + 3).for_each(|word| words.add(2 * word));
        assert_eq!(words.later.len(), KEPT_MAX);
        assert_eq!((words.records_before, words.words_before), (5, 3));
        assert_eq!((words.record_of(1), words.record_of(2)), (None, Some(5)));
    }
}
