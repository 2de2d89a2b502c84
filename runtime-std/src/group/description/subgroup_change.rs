//! Changes of subgroups, as carried by the view protocol: reserved subgroups open and close
//! (DDS-1), and idle senders pause (Spindle III-B).
//!
//! The core agrees on a list of ids to be added, and never interprets them. In a group with such
//! subgroups, an id in the upper half of the range names no node; it changes a subgroup in the next
//! view. So members agree on a view's open subgroups and on its senders exactly as they agree on
//! its members. Such an id occurs only in a list, never in a view: it is removed before the view is
//! created, so it counts in no majority.
//!
//! A change names the wanted state, so requesting it twice has the same effect as requesting it
//! once.

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_core::layout::MEMBERS_MAX;

use super::terms::Description;

/// Bit that is set in ids that change a subgroup, and therefore name no node.
const IS_CHANGE: u32 = 1 << 31;

/// Bit that is set in ids that open a subgroup, or after which a sender sends. It and the following
/// bits are used only together with the bit above.
const IS_ON: u32 = 1 << 30;

/// Bit that is set in ids that name a sender of the subgroup.
const HAS_SENDER: u32 = 1 << 29;

/// Place of a sender's index, above the subgroup's id.
const SENDER_SHIFT: u32 = 16;

const _: () = assert!(MEMBERS_MAX as u32 <= HAS_SENDER >> SENDER_SHIFT);

/// A request to change a subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubgroupChange {
    pub(crate) subgroup: SubgroupId,
    pub(crate) part: ChangedPart,
    /// Whether the subgroup opens, or the sender sends. Otherwise, it closes or pauses.
    pub(crate) is_on: bool,
}

/// The part of a subgroup that a change concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangedPart {
    /// The whole subgroup, which is reserved.
    Whole,
    /// One of its senders, by its index in the subgroup's list.
    Sender(u16),
}

impl SubgroupChange {
    /// Returns the id that represents the change in a list.
    pub(crate) fn id(self) -> NodeId {
        let on = if self.is_on { IS_ON } else { 0 };
        let sender = match self.part {
            ChangedPart::Whole => 0,
            ChangedPart::Sender(index) => HAS_SENDER | u32::from(index) << SENDER_SHIFT,
        };
        NodeId(IS_CHANGE | on | sender | u32::from(self.subgroup.0))
    }

    /// Returns the change that an id in a list represents, or `None` if the id names a node. Any
    /// other id changes nothing, because it names a subgroup that does not change.
    pub(crate) fn of_id(description: &Description, id: NodeId) -> Option<Self> {
        if !may_be_change(id) || !description.has_changing_subgroups() {
            return None;
        }
        let bits = id.get();
        let [_, _, high, low] = bits.to_be_bytes();
        let index = u16::try_from((bits & (HAS_SENDER - 1)) >> SENDER_SHIFT).ok()?;
        Some(Self {
            subgroup: SubgroupId(u16::from_be_bytes([high, low])),
            part: if bits & HAS_SENDER == 0 {
                ChangedPart::Whole
            } else {
                ChangedPart::Sender(index)
            },
            is_on: bits & IS_ON != 0,
        })
    }

    /// Returns whether both concern the same part of a subgroup, so that the later one replaces the
    /// other.
    pub(crate) fn replaces(&self, other: &Self) -> bool {
        (self.subgroup, self.part) == (other.subgroup, other.part)
    }
}

/// Returns whether an id would not name a node in a group whose subgroups change.
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
        let subgroup = SubgroupId(subgroup);
        SubgroupChange { subgroup, part: ChangedPart::Whole, is_on: opens }.id()
    }

    #[test]
    fn subgroup_change_ids_are_distinguished_from_nodes() {
        let description = description();
        for part in [ChangedPart::Whole, ChangedPart::Sender(0), ChangedPart::Sender(0x1fff)] {
            for is_on in [false, true] {
                let named = SubgroupChange { subgroup: SubgroupId(0x1234), part, is_on };
                assert_eq!(SubgroupChange::of_id(&description, named.id()), Some(named));
            }
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
    fn views_pause_and_resume_senders() {
        let mut description = description();
        let of = &mut description.subgroups[0];
        (of.pause_senders_after_ms, of.senders) = (10, Some(vec![1, 0]));
        let sender = |index, is_on| {
            let part = ChangedPart::Sender(index);
            SubgroupChange { subgroup: SubgroupId(0), part, is_on }.id()
        };
        let nodes = [NodeId(0), NodeId(1)];
        let with = |change: &[NodeId]| [&nodes[..], change].concat();
        let senders = |view: &View| view.subgroup_senders(&description, SubgroupId(0));
        let first = View::first(&description);
        assert_eq!(senders(&first), [nodes[1], nodes[0]]);
        // There is no third sender, and other subgroups do not pause.
        let other =
            SubgroupChange { subgroup: SubgroupId(1), part: ChangedPart::Sender(0), is_on: false };
        let second = first.next(&description, &with(&[sender(2, false), other.id()]));
        assert_eq!(second.paused, []);
        let list = with(&[sender(0, false), sender(1, false), sender(1, true), sender(0, false)]);
        let third = second.next(&description, &list);
        assert_eq!(senders(&third), [nodes[0]]);
        assert_eq!(third.subgroup_members(&description, SubgroupId(0)), nodes);
        let layout = description.view_layout(&third).expect("it is valid");
        let laid_out = layout.get().subgroup(SubgroupId(0)).expect("it exists");
        assert_eq!(laid_out.senders, [tramontane_core::ids::Rank(0)]);
        // It joins again, as a new process that sends.
        let fourth = third.next(&description, &nodes[..1]).next(&description, &nodes);
        assert_eq!(senders(&fourth), [nodes[1], nodes[0]]);
        // A process that joins learns who has paused.
        let told = View::from(crate::group::description::view::WireView::from(&third));
        assert_eq!(told, third);
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
