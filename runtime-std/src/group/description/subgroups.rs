//! Which subgroups of a description there are.

use tramontane_core::ids::{NodeId, SubgroupId};

use super::terms::Description;
use super::view::View;

/// The subgroups of a group that are logged.
pub(crate) fn logged_subgroups(
    description: &Description,
) -> impl Iterator<Item = SubgroupId> + use<'_> {
    let all = (0..).map(SubgroupId).zip(&description.subgroups);
    all.filter(|(_, subgroup)| subgroup.logged).map(|(id, _)| id)
}

/// All subgroups of a group.
pub(crate) fn subgroups(description: &Description) -> impl Iterator<Item = SubgroupId> + use<> {
    (0..).map(SubgroupId).take(description.subgroups.len())
}

/// The subgroups that a node belongs to, and that have a member in a view beside it.
pub(crate) fn needed(description: &Description, view: &View, node: NodeId) -> Vec<SubgroupId> {
    let is_needed = |subgroup: &SubgroupId| {
        let all =
            description.subgroups.get(subgroup.index()).map_or(&[][..], |found| found.members());
        let members = view.subgroup_members(description, *subgroup);
        all.contains(&node.get()) && members.iter().any(|member| *member != node)
    };
    subgroups(description).filter(is_needed).collect()
}
