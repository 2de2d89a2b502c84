//! The memory map of any group: parts do not overlap, and every part is aligned and inside its row.
//! Errors in a group are reported.

use proptest::prelude::*;
use tramontane_core::ids::{NodeId, Rank, SubgroupId};
use tramontane_core::layout::{
    BLOCK, CACHE_LINE, ControlCell, Delivery, Group, Layout, LayoutError, MESSAGE_MAX, SLOT_ALIGN,
    SLOT_HEADER, Subgroup, WINDOW_MAX,
};

#[cfg(feature = "blocks")]
mod channels;
mod processors;
#[cfg(feature = "views")]
mod view_columns;

/// A drawn subgroup: members, senders, window, maximum message size, and whether it is unordered.
type Drawn = (Vec<Rank>, Vec<Rank>, u32, u32, bool);

fn subgroup(group_size: u16) -> impl Strategy<Value = Drawn> {
    let members = proptest::sample::subsequence(
        (0..group_size).map(Rank).collect::<Vec<_>>(),
        1..=group_size.into(),
    );
    (members, any::<u64>(), 1_u32..40, 0_u32..300, any::<bool>()).prop_map(
        |(members, mask, window, size, unordered)| {
            let senders = members
                .iter()
                .enumerate()
                .filter(|(index, _)| mask >> index & 1 == 1)
                .map(|(_, rank)| *rank)
                .collect();
            (members, senders, window, size, unordered)
        },
    )
}

fn group() -> impl Strategy<Value = (u16, Vec<Drawn>)> {
    (1_u16..9).prop_flat_map(|size| (Just(size), prop::collection::vec(subgroup(size), 1..5)))
}

fn lent(drawn: &[Drawn]) -> Vec<Subgroup<'_>> {
    drawn
        .iter()
        .map(|(members, senders, window, message_max, unordered)| Subgroup {
            members,
            senders,
            window: *window,
            message_max: *message_max,
            delivery: if *unordered { Delivery::Unordered } else { Delivery::Ordered },
        })
        .collect()
}

proptest! {
    #[test]
    fn layout_parts_are_aligned_and_never_overlap((size, drawn) in group()) {
        let members: Vec<NodeId> = (0..u32::from(size)).map(NodeId).collect();
        let subgroups = lent(&drawn);
        let layout = Layout::new(Group { members: &members, subgroups: &subgroups }).expect("a good group");
        let all: usize = (0..size).map(|rank| layout.row_bytes(Rank(rank))).sum();
        prop_assert_eq!(layout.view_bytes(), all);
        for rank in (0..size).map(Rank) {
            // The parts of each subgroup, in the order of the subgroups; the header comes first.
            let mut end = BLOCK;
            for (index, subgroup) in subgroups.iter().enumerate() {
                let id = SubgroupId(index as u16);
                let control = layout.control_offset(rank, id);
                prop_assert_eq!(control.is_some(), subgroup.has_member(rank));
                prop_assert_eq!(layout.ring(rank, id).is_some(), subgroup.has_sender(rank));
                let place = subgroup.senders.iter().position(|sender| *sender == rank);
                prop_assert_eq!(layout.sender_rank(rank, id).map(|place| place.index()), place);
                let Some(control) = control else { continue };
                prop_assert!(control >= end && control % BLOCK == 0);
                let last = match subgroup.delivery {
                    Delivery::Ordered => ControlCell::Silent.offset(),
                    Delivery::Unordered => 8 * subgroup.senders.len().saturating_sub(1),
                };
                // All cells of an ordered control block share a line (BAT-4).
                prop_assert!(subgroup.delivery == Delivery::Unordered || last + 8 <= CACHE_LINE);
                end = control + last + 8;
                let ring = layout.ring(rank, id);
                prop_assert_eq!(ring.is_some(), subgroup.has_sender(rank));
                if let Some(ring) = ring {
                    prop_assert!(ring.offset >= end && ring.offset % CACHE_LINE == 0);
                    prop_assert_eq!(ring.stride % SLOT_ALIGN, 0);
                    let needed = subgroup.message_max as usize + SLOT_HEADER;
                    prop_assert!(ring.stride >= needed && ring.stride < needed + SLOT_ALIGN);
                    prop_assert_eq!(ring.slots, subgroup.window);
                    end = ring.offset + ring.stride * ring.slots as usize;
                }
            }
            let none = SubgroupId(subgroups.len() as u16);
            prop_assert_eq!(layout.ring(rank, none), None);
            prop_assert!(layout.row_bytes(rank) >= end && layout.row_bytes(rank) < end + BLOCK);
        }
    }

    #[test]
    fn any_group_change_changes_the_digest(
        (size, drawn) in group(),
        which in any::<prop::sample::Index>(),
    ) {
        let members: Vec<NodeId> = (0..u32::from(size)).map(NodeId).collect();
        let digest = |drawn: &[Drawn]| {
            let subgroups = lent(drawn);
            Layout::new(Group { members: &members, subgroups: &subgroups }).expect("a good group").digest()
        };
        let at = which.index(drawn.len());
        let before = digest(&drawn);
        prop_assert_eq!(before, digest(&drawn.clone()));
        let mut changed = drawn.clone();
        changed[at].2 += 1;
        prop_assert_ne!(before, digest(&changed), "another window");
        let mut changed = drawn.clone();
        changed[at].3 += 1;
        prop_assert_ne!(before, digest(&changed), "another message size");
        let mut changed = drawn.clone();
        changed[at].4 = !changed[at].4;
        prop_assert_ne!(before, digest(&changed), "another delivery");
        let mut changed = drawn;
        changed[at].1.reverse();
        if changed[at].1.len() > 1 {
            prop_assert_ne!(before, digest(&changed), "another order of senders");
        }
    }
}

#[test]
fn four_one_byte_messages_share_a_cache_line() {
    let ranks = [Rank(0)];
    let subgroup = Subgroup {
        members: &ranks,
        senders: &ranks,
        window: 8,
        message_max: 1,
        delivery: Delivery::Ordered,
    };
    let subgroups = [subgroup];
    let layout =
        Layout::new(Group { members: &[NodeId(5)], subgroups: &subgroups }).expect("a good group");
    assert_eq!(layout.ring(Rank(0), SubgroupId(0)).map(|ring| ring.stride), Some(16));
}

#[test]
fn invalid_group_is_refused_with_specific_error() {
    let ranks = [Rank(0), Rank(1)];
    let nodes = [NodeId(0), NodeId(1)];
    let good = Subgroup {
        members: &ranks,
        senders: &ranks,
        window: 4,
        message_max: 16,
        delivery: Delivery::Ordered,
    };
    let error = |members: &[NodeId], subgroup: Subgroup<'_>| {
        Layout::new(Group { members, subgroups: &[subgroup] }).err()
    };
    assert_eq!(error(&nodes, good), None);
    assert_eq!(error(&[], good), Some(LayoutError::NoMembers));
    assert_eq!(error(&[NodeId(3), NodeId(3)], good), Some(LayoutError::DuplicateMember));
    assert_eq!(error(&nodes[..1], good), Some(LayoutError::BadSubgroupMember));
    assert_eq!(error(&nodes, Subgroup { members: &[], ..good }), Some(LayoutError::EmptySubgroup));
    let twice = [Rank(1), Rank(1)];
    assert_eq!(
        error(&nodes, Subgroup { members: &twice, ..good }),
        Some(LayoutError::BadSubgroupMember)
    );
    let outside = Subgroup { members: &ranks[..1], ..good };
    assert_eq!(error(&nodes, outside), Some(LayoutError::SenderOutsideSubgroup));
    assert_eq!(
        error(&nodes, Subgroup { senders: &twice, ..good }),
        Some(LayoutError::SenderOutsideSubgroup)
    );
    assert_eq!(error(&nodes, Subgroup { window: 0, ..good }), Some(LayoutError::ZeroWindow));
    for (window, expected) in
        [(WINDOW_MAX, None), (WINDOW_MAX + 1, Some(LayoutError::WindowTooLarge))]
    {
        assert_eq!(error(&nodes, Subgroup { window, ..good }), expected);
    }
    for (message_max, expected) in
        [(MESSAGE_MAX, None), (MESSAGE_MAX + 1, Some(LayoutError::MessageTooLarge))]
    {
        assert_eq!(error(&nodes, Subgroup { message_max, ..good }), expected);
    }
    #[cfg(feature = "views")]
    assert_eq!(
        Layout::with_views(Group { members: &[], subgroups: &[good] }).err(),
        Some(LayoutError::NoMembers)
    );
    let none = Layout::new(Group { members: &nodes, subgroups: &[] }).err();
    assert_eq!(none, Some(LayoutError::NoSubgroups));
    let codes: Vec<u8> =
        [LayoutError::NoMembers, LayoutError::RowTooLarge].map(LayoutError::code).into();
    assert_eq!(codes, [1, 12], "numbers are stable");
}
