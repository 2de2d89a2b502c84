//! The opening and closing of reserved subgroups, as carried by the view protocol (DDS-1).
//!
//! The core agrees on a list of ids to be added, and never interprets them. In a group with
//! reserved subgroups, an id in the upper half of the range names no node; it opens or closes such
//! a subgroup in the next view. So members agree on a view's open subgroups exactly as they agree
//! on its members. Such an id occurs only in a list, never in a view: it is removed before the view
//! is created, so it counts in no majority.
//!
//! A change names the wanted state, so requesting it twice has the same effect as requesting it
//! once.

use tramontane_core::ids::{NodeId, SubgroupId};

use super::terms::Description;

/// Bit that is set in ids that open or close a subgroup, and therefore name no node.
const IS_CHANGE: u32 = 1 << 31;

/// Bit that is set in ids that open a subgroup. It is used only together with the bit above.
const OPENS: u32 = 1 << 30;

/// A request to open or close a reserved subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubgroupChange {
    pub(crate) subgroup: SubgroupId,
    pub(crate) opens: bool,
}

impl SubgroupChange {
    /// Returns the id that represents the change in a list.
    pub(crate) fn id(self) -> NodeId {
        let opens = if self.opens { OPENS } else { 0 };
        NodeId(IS_CHANGE | opens | u32::from(self.subgroup.0))
    }

    /// Returns the change that an id in a list represents, or `None` if the id names a node. Any
    /// other id changes nothing, because it names a subgroup that is not reserved.
    pub(crate) fn of_id(description: &Description, id: NodeId) -> Option<Self> {
        if !may_be_change(id) || !description.has_reserved() {
            return None;
        }
        let [_, _, high, low] = id.get().to_be_bytes();
        let subgroup = SubgroupId(u16::from_be_bytes([high, low]));
        Some(Self { subgroup, opens: id.get() & OPENS != 0 })
    }
}

/// Returns whether an id would not name a node in a group with reserved subgroups.
pub(crate) fn may_be_change(id: NodeId) -> bool {
    id.get() & IS_CHANGE != 0
}

/// Returns the nodes among the ids of a list.
pub(crate) fn nodes_of(description: &Description, list: &[NodeId]) -> Vec<NodeId> {
    let is_node = |id: &NodeId| SubgroupChange::of_id(description, *id).is_none();
    list.iter().copied().filter(is_node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::description::terms::SubgroupDescription;
    use crate::group::description::view::View;

    fn description() -> Description {
        let mut description = Description::local("places", 2, 8, 16);
        let reserved = |name| SubgroupDescription {
            reserved: true,
            restart_empty: true,
            ..SubgroupDescription::named(name)
        };
        description.subgroups.extend([reserved("a"), reserved("b")]);
        description.complete().expect("well formed");
        description
    }

    fn change(subgroup: u16, opens: bool) -> NodeId {
        SubgroupChange { subgroup: SubgroupId(subgroup), opens }.id()
    }

    #[test]
    fn subgroup_change_ids_are_distinguished_from_nodes() {
        let description = description();
        for opens in [false, true] {
            let named = SubgroupChange { subgroup: SubgroupId(0x1234), opens };
            assert_eq!(SubgroupChange::of_id(&description, named.id()), Some(named));
        }
        assert_eq!(SubgroupChange::of_id(&description, NodeId(1)), None);
        let plain = Description::local("plain", 2, 8, 16);
        assert_eq!(SubgroupChange::of_id(&plain, change(1, true)), None);
    }

    #[test]
    fn reserved_subgroups_stay_closed_until_opened() {
        let description = description();
        let first = View::first(&description);
        assert_eq!(first.closed, [SubgroupId(1), SubgroupId(2)]);
        let nodes = [NodeId(0), NodeId(1)];
        let second = first.next(&description, &[nodes[0], nodes[1], change(2, true)]);
        assert_eq!((&second.members[..], &second.closed[..]), (&nodes[..], &[SubgroupId(1)][..]));
        assert_eq!(second.subgroup_members(&description, SubgroupId(2)), nodes);
        // Changes apply in the order of the list. Changes that are already in effect, or that name
        // subgroups that are not reserved, do nothing.
        let list = [nodes[1], change(1, true), change(1, false), change(2, true), change(0, false)];
        let third = second.next(&description, &list);
        assert_eq!((&third.members[..], &third.closed[..]), (&nodes[1..], &[SubgroupId(1)][..]));
        assert_eq!(third.without_reserved(&description).closed, [SubgroupId(1), SubgroupId(2)]);
    }

    #[test]
    fn reserved_subgroups_exclude_large_node_ids() {
        let mut description = description();
        description.nodes[1].id = IS_CHANGE;
        description.subgroups.iter_mut().for_each(|of| (of.members, of.senders) = (None, None));
        description.initial.clear();
        let told = description.complete().expect_err("no node").to_string();
        assert!(told.contains("2147483648"), "{told}");
        description.subgroups.iter_mut().for_each(|of| of.reserved = false);
        description.complete().expect("a node like others");
    }
}
