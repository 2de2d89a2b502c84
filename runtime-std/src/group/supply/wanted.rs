//! The requests that a joining node makes to a member.

use tramontane_core::ids::{NodeId, SubgroupId};

use crate::group::description::subgroups::needed;
use crate::group::description::terms::Description;
use crate::group::description::view::View;

/// The subgroups that a node asks to be supplied with.
pub(crate) struct Wanted {
    pub(crate) subgroups: Vec<SubgroupId>,
    /// The subgroups for which the node asks for records starting at a number, instead of a state.
    pub(crate) records: Vec<(SubgroupId, u64)>,
}

/// A node that has caught up, and wants to be admitted.
#[derive(Debug)]
pub(crate) struct ReadyJoiner {
    pub(crate) node: NodeId,
    /// The members that supply the node.
    pub(crate) sources: Vec<(SubgroupId, NodeId)>,
    /// The members that the node reaches.
    pub(crate) reached: Vec<NodeId>,
}

impl ReadyJoiner {
    /// Returns whether the node reaches all members of the view, and each of its subgroups that has
    /// members is supplied by one of them. If not all members reached it, the view that admits it
    /// would remove it again.
    pub(crate) fn matches(&self, description: &Description, view: &View) -> bool {
        let has = |subgroup: &SubgroupId| {
            let is_source =
                |(of, node): &(SubgroupId, NodeId)| of == subgroup && view.members.contains(node);
            self.sources.iter().any(is_source)
        };
        view.members.iter().all(|member| self.reached.contains(member))
            && needed(description, view, self.node).iter().all(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::description::view::FIRST_VIEW;

    #[test]
    fn joiner_matches_only_views_it_has_reached() {
        let description = Description::local("ready", 4, 8, 16);
        let view = |members: &[u32]| {
            let members = members.iter().copied().map(NodeId).collect();
            View::with_all_senders(FIRST_VIEW, members, Vec::new())
        };
        let joiner = ReadyJoiner {
            node: NodeId(3),
            sources: vec![(SubgroupId(0), NodeId(0))],
            reached: vec![NodeId(0), NodeId(1)],
        };
        assert!(joiner.matches(&description, &view(&[0, 1])));
        assert!(joiner.matches(&description, &view(&[0])));
        assert!(!joiner.matches(&description, &view(&[1])), "its supplier is gone");
        assert!(!joiner.matches(&description, &view(&[0, 1, 2])), "node 2 came meanwhile");
    }
}
