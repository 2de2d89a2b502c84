//! The choice of the nodes that a forming node asks whether a member is already running.
//!
//! If every node asked all others at once, many nodes on few processors would do little else, and
//! would never meet: the connections grow with the square of their number.

use tramontane_core::ids::NodeId;

use crate::group::control::probe::Probed;

/// Number of nodes that are asked at once.
const ASKED_MAX: usize = 4;

/// The nodes that have been asked so far.
#[derive(Debug, Default)]
pub(crate) struct Lookout {
    /// The node that was asked last.
    last: Option<NodeId>,
    /// A node whose answer was a reason to wait or to give up. It is asked every time, because such
    /// an answer counts only if it is repeated.
    noticed: Option<NodeId>,
}

impl Lookout {
    /// Returns the nodes to ask next. Each of the candidates, which are sorted, gets its turn.
    pub(crate) fn next(&mut self, candidates: &[NodeId]) -> Vec<NodeId> {
        let noticed = self.noticed.filter(|node| candidates.contains(node));
        let (before, after) =
            candidates.split_at(candidates.partition_point(|node| Some(*node) <= self.last));
        let others = after.iter().chain(before).copied().filter(|node| noticed != Some(*node));
        let turn: Vec<NodeId> = others.take(ASKED_MAX - usize::from(noticed.is_some())).collect();
        self.last = turn.last().copied().or(self.last);
        noticed.into_iter().chain(turn).collect()
    }

    pub(crate) fn heard(&mut self, probed: &Probed) {
        let other = probed.other_configuration.map(|(node, _)| node);
        let refused = probed.refused.as_ref().map(|(node, _)| *node);
        self.noticed = other.or(refused).or(probed.restarting.map(NodeId));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookout_asks_few_nodes_in_turn() {
        let nodes: Vec<NodeId> = (0..10).map(NodeId).collect();
        let mut lookout = Lookout::default();
        let ids = |asked: Vec<NodeId>| asked.iter().map(|node| node.get()).collect::<Vec<_>>();
        assert_eq!(ids(lookout.next(&nodes)), [0, 1, 2, 3]);
        assert_eq!(ids(lookout.next(&nodes)), [4, 5, 6, 7]);
        assert_eq!(ids(lookout.next(&nodes)), [8, 9, 0, 1]);
        // Some have arrived at the meeting.
        assert_eq!(ids(lookout.next(&[NodeId(1), NodeId(7)])), [7, 1]);
        assert_eq!(ids(lookout.next(&[])), [0; 0]);
    }

    #[test]
    fn noticed_node_is_asked_every_time() {
        let nodes: Vec<NodeId> = (0..10).map(NodeId).collect();
        let mut lookout = Lookout::default();
        lookout.heard(&Probed { restarting: Some(5), ..Probed::default() });
        for expected in [[5, 0, 1, 2], [5, 3, 4, 6], [5, 7, 8, 9], [5, 0, 1, 2]] {
            assert_eq!(lookout.next(&nodes), expected.map(NodeId));
        }
        lookout.heard(&Probed::default());
        assert_eq!(lookout.next(&nodes), [3, 4, 5, 6].map(NodeId));
    }
}
