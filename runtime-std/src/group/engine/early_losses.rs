//! Nodes that were lost soon after their admission. With each such loss, a node must wait longer
//! until it is admitted again.
//!
//! Before a joining node is admitted, it proves that it can reach all members (`joining`). But with
//! an unreliable link, or a process that exits right away, each admission would still cost the
//! group two view changes, while deliveries wait for a failure timeout.

use std::time::Duration;

use tramontane_core::ids::{NodeId, Time};

use crate::poll::nanoseconds;

/// The time after an admission during which a loss counts as early.
const SOON: Duration = Duration::from_secs(10);

/// The time after which losses are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The pause after the second such loss. It doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The maximum pause.
const PAUSE_MAX: Duration = Duration::from_secs(8);

/// The early losses of one node.
#[derive(Clone, Copy, Debug)]
struct Losses {
    node: NodeId,
    times: u32,
    last: Time,
}

impl Losses {
    /// Returns the remaining time that the node must wait.
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
    /// Members that joined recently, with the time when each joined.
    came: Vec<(NodeId, Time)>,
    /// Members whose processes exited during the current view, as seen by this member.
    ended: Vec<NodeId>,
    lost: Vec<Losses>,
}

impl EarlyLosses {
    /// Notes that a member's process has exited. Such a member needs no pause, because it returns
    /// only when somebody restarts it.
    pub(crate) fn process_ended(&mut self, node: NodeId) {
        self.ended.push(node);
    }

    /// Begins a view: `joined` are the new nodes, and `lost` the lost members, excluding those that
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

    /// Returns the reason why a node is not admitted yet, if it has to wait.
    pub(crate) fn refusal(&self, node: NodeId, now: Time) -> Option<String> {
        let losses = self.lost.iter().find(|losses| losses.node == node)?;
        let left = losses.left(now)?.as_secs() + 1;
        Some(format!(
            "it was lost {} times soon after it had joined; it may join again in {left} s",
            losses.times
        ))
    }

    /// Returns the remaining wait, and the reason, for each node that has to wait.
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

    /// Returns the pause in ms after `losses` losses, each one second after the admission.
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
    fn rejoin_delay_grows_with_each_early_loss() {
        assert_eq!([0, 1, 2, 3, 4].map(pause_ms), [0, 0, 1_000, 2_000, 4_000]);
        assert_eq!([5, 6, 20].map(pause_ms), [8_000; 3]);
    }

    #[test]
    fn late_losses_do_not_delay_rejoining() {
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
    fn early_losses_are_forgotten_after_a_while() {
        let mut early = EarlyLosses::default();
        for start in [0, 2_000, 70_000] {
            early.view_begins(&[NODE], &[], at(start));
            early.view_begins(&[], &[NODE], at(start + 500));
        }
        assert_eq!(early.refusal(NODE, at(70_500)), None, "the first one by now");
    }
}
