//! Selections of a description's subgroups.

use tramontane_core::ids::{NodeId, SubgroupId};

use super::terms::Description;
use super::view::View;

/// Returns the subgroups of a group that are logged.
pub(crate) fn logged_subgroups(
    description: &Description,
) -> impl Iterator<Item = SubgroupId> + use<'_> {
    let all = (0..).map(SubgroupId).zip(&description.subgroups);
    all.filter(|(_, subgroup)| subgroup.logged).map(|(id, _)| id)
}

/// Returns all subgroups of a group.
pub(crate) fn subgroups(description: &Description) -> impl Iterator<Item = SubgroupId> + use<> {
    (0..).map(SubgroupId).take(description.subgroups.len())
}

/// Returns the subgroups that a node belongs to and that have another member in a view.
pub(crate) fn needed(description: &Description, view: &View, node: NodeId) -> Vec<SubgroupId> {
    let is_needed = |subgroup: &SubgroupId| {
        let all =
            description.subgroups.get(subgroup.index()).map_or(&[][..], |found| found.members());
        let members = view.subgroup_members(description, *subgroup);
        all.contains(&node.get()) && members.iter().any(|member| *member != node)
    };
    subgroups(description).filter(is_needed).collect()
}
