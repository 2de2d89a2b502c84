//! Which own messages become durable with which count of the log.
//!
//! A log counts the messages of all senders, and a receipt the own ones. So each step that delivers
//! own messages leaves a mark: these are delivered, and the log has so many records. Once so many
//! are durable, they are.
//!
//! # Invariants
//! - Marks rise in both numbers. One is kept until its messages are durable everywhere.
//! - A message is never taken for durable before it is: the log's count at a mark includes it.

use std::collections::VecDeque;

use tramontane_core::ids::DurableCount;
use tramontane_core::node::DurableCounts;

use super::counts::Counts;
use super::level::Count;

/// Own messages below the ordinal are among so many records of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    ordinal: u64,
    records: DurableCount,
}

/// The marks of a subgroup in which this node sends.
#[derive(Debug, Default)]
pub(crate) struct DurableMarks(VecDeque<Mark>);

impl DurableMarks {
    /// Own messages below the ordinal were delivered, and the log has so many records.
    pub(crate) fn add(&mut self, ordinal: u64, records: DurableCount) {
        if self.0.back().is_none_or(|last| last.ordinal < ordinal) {
            self.0.push_back(Mark { ordinal, records });
        }
    }

    /// So many records are durable: raises the counts of own messages. True if one moved.
    pub(crate) fn durable(&mut self, durable: &DurableCounts, counts: &Counts) -> bool {
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

    /// What a step delivers: for each message, whether it is an own one.
    fn steps() -> impl Strategy<Value = Vec<Vec<bool>>> {
        prop::collection::vec(prop::collection::vec(any::<bool>(), 0..5), 1..30)
    }

    proptest! {
        /// Beside a model that knows the place of each own message in the log: none is durable too
        /// early, and all of a step are once the log has the step.
        #[test]
        fn own_messages_are_durable_with_the_log_and_never_before(
            steps in steps(),
            raises in prop::collection::vec((0_usize..40, 0_u64..60, 0_u64..60, 0_u64..60), 0..60),
        ) {
            let (mut marks, counts) = (DurableMarks::default(), Counts::default());
            // The place in the log of each own message, and where the log ended with its step.
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
