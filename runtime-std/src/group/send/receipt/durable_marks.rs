//! Maps durable counts of the log to this node's own messages.
//!
//! A log counts the messages of all senders, but a receipt counts only this node's own messages. So
//! each step that delivers own messages leaves a mark, which contains the number of own messages
//! delivered so far and the number of records in the log. Once that many records are durable, so
//! are these messages.
//!
//! # Invariants
//! - Marks rise in both numbers. A mark is kept until its messages are durable everywhere.
//! - A message never counts as durable too early, because the log's count at a mark includes it.

use std::collections::VecDeque;

use tramontane_core::ids::DurableCount;
use tramontane_core::node::DurableCounts;

use super::counts::ReceiptCounts;
use super::level::Count;

/// The node's messages below the ordinal are among the first `records` records of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    ordinal: u64,
    records: DurableCount,
}

/// The marks of a subgroup in which this node sends.
#[derive(Debug, Default)]
pub(crate) struct DurableMarks(VecDeque<Mark>);

impl DurableMarks {
    /// Adds a mark: this node's messages below the ordinal have been delivered, and the log has
    /// `records` records.
    pub(crate) fn add(&mut self, ordinal: u64, records: DurableCount) {
        if self.0.back().is_none_or(|last| last.ordinal < ordinal) {
            self.0.push_back(Mark { ordinal, records });
        }
    }

    /// Raises the counts of this node's messages to match the durable records. Returns whether any
    /// count has changed.
    pub(crate) fn durable(&mut self, durable: &DurableCounts, counts: &ReceiptCounts) -> bool {
        let levels = [
            (Count::Here, durable.here),
            (Count::Majority, durable.majority),
            (Count::Everywhere, durable.everywhere),
        ];
        let mut moved = false;
        for (count, records) in levels {
            let reached = self.0.partition_point(|mark| mark.records <= records);
            let last = reached.checked_sub(1).and_then(|last| self.0.get(last));
            moved |= last.is_some_and(|mark| counts.raise(count, mark.ordinal));
        }
        while self.0.front().is_some_and(|first| first.records <= durable.everywhere) {
            self.0.pop_front();
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the deliveries of each step. The flag of a message says whether this node sent it.
    fn steps() -> impl Strategy<Value = Vec<Vec<bool>>> {
        prop::collection::vec(prop::collection::vec(any::<bool>(), 0..5), 1..30)
    }

    proptest! {
        /// Compares the marks with a model that knows the log position of each of this node's
        /// messages. No message is durable too early, and all messages of a step are durable once
        /// the log has that step.
        #[test]
        fn local_messages_become_durable_with_the_log(
            steps in steps(),
            raises in prop::collection::vec((0_usize..40, 0_u64..60, 0_u64..60, 0_u64..60), 0..60),
        ) {
            let (mut marks, counts) = (DurableMarks::default(), ReceiptCounts::default());
            // The log position of each of this node's messages, and the end of the log after its
            // step.
            let (mut places, mut step_ends) = (Vec::new(), Vec::new());
            let (mut records, mut shown) = (0, [0; 3]);
            for (index, step) in steps.iter().enumerate() {
                for is_own in step {
                    if *is_own {
                        places.push(records);
                    }
                    records += 1;
                }
                step_ends.resize(places.len(), records);
                marks.add(places.len() as u64, DurableCount(records));
                for (_, here, majority, everywhere) in
                    raises.iter().filter(|(at, ..)| *at == index)
                {
                    let mut raised = [*here, *majority, *everywhere];
                    raised.sort_unstable_by(|one, other| other.cmp(one));
                    for (shown, raised) in shown.iter_mut().zip(raised) {
                        *shown = (*shown).max(raised.min(records));
                    }
                    let [here, majority, everywhere] = shown.map(DurableCount);
                    marks.durable(&DurableCounts { here, majority, everywhere }, &counts);
                    for (count, durable) in
                        [Count::Here, Count::Majority, Count::Everywhere].into_iter().zip(shown)
                    {
                        let told = usize::try_from(counts.get(count)).expect("it is small");
                        prop_assert!(places.iter().take(told).all(|place| *place < durable));
                        prop_assert!(
                            step_ends.iter().skip(told).all(|end| *end > durable),
                            "{:?}: {} of {:?} with {}", count, told, step_ends, durable
                        );
                    }
                }
            }
        }
    }
}
