//! Handles logged subgroups that lost all their members while the group continued in other
//! subgroups, and whose nodes have since returned.
//!
//! The view after the loss closed such a subgroup. Its members left one at a time, so a record of
//! one log may be in no other log. Once all of them have returned, the longest log has every
//! record, and these nodes are treated as members of the newest view, in which the subgroup is
//! open.

use std::cmp::Reverse;

use tramontane_core::ids::{NodeId, SubgroupId};

use super::messages::NodeAnswer;
use crate::group::description::subgroups::logged_subgroups;
use crate::group::description::terms::Description;
use crate::group::description::view::{View, WireView};

/// Returns the newest view that any node knows. A failed restart may have noted this view with open
/// subgroups.
pub(super) fn newest(answers: &[NodeAnswer]) -> Option<View> {
    let decided = answers.iter().filter_map(|answer| answer.decided.clone()).map(View::from);
    decided.max_by_key(|view| (view.id, Reverse(view.closed.len())))
}

/// Returns whether a logged subgroup is closed in that view.
pub(super) fn has_closed_log(view: &View, description: &Description) -> bool {
    logged_subgroups(description).any(|subgroup| view.is_closed(subgroup))
}

/// Returns the answers, with such nodes added to the newest view. If the restart may continue with
/// less, one node per subgroup is enough.
pub(super) fn with_returned(
    mut answers: Vec<NodeAnswer>,
    description: &Description,
    with_less: bool,
) -> Vec<NodeAnswer> {
    let Some(base) = newest(&answers) else { return answers };
    let nodes_of = |subgroup: SubgroupId| {
        let of = description.subgroups.get(subgroup.index());
        of.map_or(&[][..], |of| of.members()).iter().copied().map(NodeId)
    };
    let is_here = |node: NodeId| {
        answers.iter().any(|answer| answer.node == node.get() && answer.decided.is_some())
    };
    let returns = |subgroup: SubgroupId| match with_less {
        true => nodes_of(subgroup).any(is_here),
        false => nodes_of(subgroup).chain(base.members.iter().copied()).all(is_here),
    };
    let logged = || logged_subgroups(description);
    let opened: Vec<SubgroupId> =
        logged().filter(|subgroup| base.is_closed(*subgroup) && returns(*subgroup)).collect();
    let mut view = base.clone();
    view.closed.retain(|subgroup| !opened.contains(subgroup));
    for node in opened.iter().flat_map(|subgroup| nodes_of(*subgroup)).filter(|node| is_here(*node))
    {
        if !view.members.contains(&node) {
            view.members.push(node);
        }
    }
    let is_new = |node: NodeId| view.members.contains(&node) && !base.members.contains(&node);
    for answer in &mut answers {
        let node = NodeId(answer.node);
        for (subgroup, log) in logged().zip(&mut answer.logs) {
            // If the subgroup has continued without the node, another log extends further.
            if is_new(node) && !opened.contains(&subgroup) {
                *log = None;
            }
            // The counts reported by all members belong to another view, which had other members.
            if let Some(log) = log
                && (opened.contains(&subgroup) || nodes_of(subgroup).any(is_new))
            {
                log.noted[2] = 0;
            }
        }
        if is_new(node) || answer.decided.as_ref().is_some_and(|of| of.id() == base.id.0) {
            answer.decided = Some(WireView::from(&view));
        }
    }
    answers
}

#[cfg(test)]
mod tests {
    use tramontane_core::ids::ViewId;

    use super::super::messages::LogAnswer;
    use super::*;

    fn view(id: u64, members: &[u32], closed: &[u16]) -> View {
        View::with_all_senders(
            ViewId(id),
            members.iter().copied().map(NodeId).collect(),
            closed.iter().copied().map(SubgroupId).collect(),
        )
    }

    fn answer(node: u32, decided: &View, logs: [Option<u64>; 2]) -> NodeAnswer {
        let log = |end| LogAnswer {
            first: 0,
            view: 1,
            end,
            damaged: Vec::new(),
            is_of_another: false,
            noted: [end; 3],
        };
        NodeAnswer {
            node,
            decided: Some(WireView::from(decided)),
            promise: None,
            heard: (0, 0),
            logs: logs.map(|end| end.map(log)).into(),
            with_less: None,
            forgotten: 0,
        }
    }

    /// Nodes 0 and 1 log in one subgroup, nodes 1 to 3 in the other. Node 3 left first, then nodes
    /// 2 and 1.
    #[test]
    fn closed_subgroup_opens_when_all_nodes_return() {
        let mut description = Description::local("g", 4, 8, 16);
        let mut two = description.subgroups[0].clone();
        for (subgroup, nodes) in
            [(&mut description.subgroups[0], vec![0, 1]), (&mut two, vec![1, 2, 3])]
        {
            (subgroup.logged, subgroup.members) = (true, Some(nodes.clone()));
            subgroup.senders = Some(nodes);
        }
        description.subgroups.push(two);
        let answers = vec![
            answer(0, &view(4, &[0], &[1]), [Some(9), None]),
            answer(1, &view(3, &[0, 1], &[]), [Some(5), Some(7)]),
            answer(2, &view(2, &[0, 1, 2], &[]), [None, Some(4)]),
            answer(3, &view(1, &[0, 1, 2, 3], &[]), [None, Some(6)]),
        ];
        let opened = |answers: &[NodeAnswer], with_less| {
            newest(&with_returned(answers.to_vec(), &description, with_less)).expect("a view")
        };
        assert_eq!(opened(&answers, false), view(4, &[0, 1, 2, 3], &[]));
        assert_eq!(opened(&answers[..3], false), view(4, &[0], &[1]), "node 3 is missing");
        assert_eq!(opened(&answers[..2], true), view(4, &[0, 1], &[]));
        let answers = with_returned(answers, &description, false);
        let (one, three) = (&answers[1], &answers[3]);
        assert_eq!(one.logs[0], None, "it lacks what node 0 logged without it");
        assert_eq!(one.logs[1].as_ref().map(|log| (log.end, log.noted)), Some((7, [7, 7, 0])));
        assert_eq!(three.decided, one.decided);
    }
}
