//! Nodes that were lost soon after they were admitted: with each such loss they wait longer until
//! they are admitted again.
//!
//! A joiner proves that it reaches all members before it is admitted (`joining`). A link that works
//! intermittently, or a process that ends at once, would still cost the group two view changes each
//! time, with deliveries that wait for a failure timeout.

use std::time::Duration;

use tramontane_core::ids::{NodeId, Time};

use crate::poll::nanoseconds;

/// The time after an admission within which a loss counts.
const SOON: Duration = Duration::from_secs(10);

/// The time after which losses are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The pause after the second such loss; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(8);

/// The losses of one node.
#[derive(Clone, Copy, Debug)]
struct Losses {
    node: NodeId,
    times: u32,
    last: Time,
}

impl Losses {
    /// Returns how long the node must still wait.
    fn left(&self, now: Time) -> Option<Duration> {
        let doublings = self.times.checked_sub(2)?;
        let pause = PAUSE_MIN.saturating_mul(1 << doublings.min(8)).min(PAUSE_MAX);
        let left = pause.saturating_sub(Duration::from_nanos(now.since(self.last)));
        (left > Duration::ZERO).then_some(left)
    }
}

/// Early losses that this member has seen.
#[derive(Debug, Default)]
pub(crate) struct EarlyLosses {
    /// Members that joined recently, and when.
    came: Vec<(NodeId, Time)>,
    /// Members whose processes ended in the present view, as seen by this member.
    ended: Vec<NodeId>,
    lost: Vec<Losses>,
}

impl EarlyLosses {
    /// Notes that a member's process has ended; it needs no pause, because it returns only when it
    /// is started again.
    pub(crate) fn process_ended(&mut self, node: NodeId) {
        self.ended.push(node);
    }

    /// Begins a view: `joined` are the new nodes, and `lost` the lost members, without those that
    /// left.
    pub(crate) fn view_begins(&mut self, joined: &[NodeId], lost: &[NodeId], now: Time) {
        self.came.retain(|(_, came)| now.since(*came) < nanoseconds(SOON));
        self.lost.retain(|losses| now.since(losses.last) < nanoseconds(FORGOTTEN_AFTER));
        let ended = std::mem::take(&mut self.ended);
        let is_early = |node: &NodeId| self.came.iter().any(|(came, _)| came == node);
        for node in lost.iter().filter(|node| is_early(node) && !ended.contains(node)) {
            match self.lost.iter_mut().find(|losses| losses.node == *node) {
                Some(losses) => (losses.times, losses.last) = (losses.times.saturating_add(1), now),
                None => self.lost.push(Losses { node: *node, times: 1, last: now }),
            }
        }
        self.came.retain(|(node, _)| !lost.contains(node) && !joined.contains(node));
        self.came.extend(joined.iter().map(|node| (*node, now)));
    }

    /// Returns why a node is not admitted yet, if it has to wait.
    pub(crate) fn refusal(&self, node: NodeId, now: Time) -> Option<String> {
        let losses = self.lost.iter().find(|losses| losses.node == node)?;
        let left = losses.left(now)?.as_secs() + 1;
        Some(format!(
            "it was lost {} times soon after it had joined; it may join again in {left} s",
            losses.times
        ))
    }

    /// Returns, for each node that has to wait, how long and why.
    pub(crate) fn notices(&self, now: Time) -> impl Iterator<Item = String> {
        self.lost.iter().filter_map(move |losses| {
            let why = self.refusal(losses.node, now)?;
            Some(format!("node {} is waiting: {why}", losses.node))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(3);

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// Returns the pause in ms after that many losses, each one second after the admission.
    fn pause_ms(losses: u32) -> u64 {
        let (mut early, mut now) = (EarlyLosses::default(), 0);
        for _ in 0..losses {
            early.view_begins(&[NODE], &[], at(now));
            now += 1_000;
            early.view_begins(&[], &[NODE], at(now));
        }
        let pause = (0..).find(|later| early.refusal(NODE, at(now + later)).is_none());
        pause.expect("it ends")
    }

    #[test]
    fn pauses_grow_with_each_early_loss() {
        assert_eq!([0, 1, 2, 3, 4].map(pause_ms), [0, 0, 1_000, 2_000, 4_000]);
        assert_eq!([5, 6, 20].map(pause_ms), [8_000; 3]);
    }

    #[test]
    fn late_losses_and_ended_processes_do_not_count() {
        let mut early = EarlyLosses::default();
        for start in (0..).step_by(100_000).take(5) {
            early.view_begins(&[NODE], &[], at(start));
            early.view_begins(&[NodeId(9)], &[], at(start + 11_000));
            early.view_begins(&[], &[NODE], at(start + 12_000));
            early.process_ended(NodeId(9));
            early.view_begins(&[], &[NodeId(9)], at(start + 13_000));
            assert_eq!(early.notices(at(start + 13_000)).count(), 0);
        }
    }

    #[test]
    fn old_early_losses_are_forgotten() {
        let mut early = EarlyLosses::default();
        for start in [0, 2_000, 70_000] {
            early.view_begins(&[NODE], &[], at(start));
            early.view_begins(&[], &[NODE], at(start + 500));
        }
        assert_eq!(early.refusal(NODE, at(70_500)), None, "the first one by now");
    }
}
