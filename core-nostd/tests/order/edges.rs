//! Limits and edge cases: the largest groups, lookups of things that a layout lacks, offsets
//! between two cells, and a sender that waits for a silent one.

use crate::common::{send, settle, with_options};
use tramontane_core::ids::{NodeId, Rank, SubgroupId};
use tramontane_core::layout::SUBGROUPS_MAX;
use tramontane_core::layout::{Delivery, Group, Layout, LayoutError, MEMBERS_MAX, Subgroup};
use tramontane_core::memory::{Line, Row};
use tramontane_core::multicast::Switches;
use tramontane_core::node::Options;

const PAIR: [Rank; 2] = [Rank(0), Rank(1)];
const NODES: [NodeId; 2] = [NodeId(4), NodeId(5)];
const BOTH_SEND: Subgroup<'static> = Subgroup {
    members: &PAIR,
    senders: &PAIR,
    window: 4,
    message_max: 16,
    delivery: Delivery::Ordered,
};

/// LAY-1.1: the maximum number of members and subgroups is accepted, and one more is refused.
#[test]
fn exceeding_member_or_subgroup_limit_is_refused() {
    let nodes: Vec<NodeId> = (0..).map(NodeId).take(MEMBERS_MAX + 1).collect();
    let group = |members| Group { members, subgroups: &[BOTH_SEND] };
    assert!(group(&nodes[..MEMBERS_MAX]).check().is_ok());
    assert_eq!(group(&nodes).check(), Err(LayoutError::TooManyMembers));
    let many = vec![BOTH_SEND; SUBGROUPS_MAX + 1];
    let group = |subgroups| Group { members: &NODES, subgroups };
    assert!(group(&many[..SUBGROUPS_MAX]).check().is_ok());
    assert_eq!(group(&many).check(), Err(LayoutError::TooManySubgroups));
}

/// LAY-1.2: a layout has no offset for a part that its group lacks.
#[test]
fn layout_omits_parts_that_the_group_lacks() {
    let lone = Subgroup { members: &PAIR[..1], senders: &PAIR[..1], ..BOTH_SEND };
    let silent = Subgroup { senders: &[], ..BOTH_SEND };
    let subgroups = [BOTH_SEND, lone, silent];
    let layout = Layout::new(Group { members: &NODES, subgroups: &subgroups }).expect("good");
    for (subgroup, control, sends) in
        [(0, true, true), (1, false, false), (2, true, false), (3, false, false)]
    {
        let subgroup = SubgroupId(subgroup);
        assert_eq!(layout.control_offset(Rank(1), subgroup).is_some(), control, "{subgroup}");
        assert_eq!(layout.ring(Rank(1), subgroup).is_some(), sends, "{subgroup}");
        assert_eq!(layout.sender_rank(Rank(1), subgroup).is_some(), sends, "{subgroup}");
    }
}

/// MEM-1.1: eight bytes that span two cells are not a cell.
#[test]
fn cell_offset_must_be_a_multiple_of_eight() {
    let memory = [const { Line::new() }; 1];
    let row = Row::from_lines(&memory);
    for offset in 0..=56 {
        assert_eq!(row.cell(offset).is_ok(), offset % 8 == 0, "{offset}");
    }
}

/// NUL-4: nulls let one member send while another does not. Without nulls, a message waits for the
/// sequence position before it.
#[test]
fn message_waits_for_silent_senders_without_nulls() {
    let layout = Layout::new(Group { members: &NODES, subgroups: &[BOTH_SEND] }).expect("good");
    let without = Switches::all().difference(Switches::NULLS);
    let (late, early) = (b"the second sender's".to_vec(), b"the first's".to_vec());
    let late = late[..16].to_vec();
    for (switches, alone, order) in [
        (Switches::all(), 1, [late.clone(), early.clone()]),
        (without, 0, [early.clone(), late.clone()]),
    ] {
        let options = Options { switches, ..Options::default() };
        with_options(&layout, options, |nodes, outboxes, _| {
            let mut delivered = [Vec::new(), Vec::new()];
            send(outboxes[1].as_ref().expect("it sends"), &late).expect("a slot is free");
            settle(nodes, &mut delivered);
            assert_eq!(delivered.each_ref().map(Vec::len), [alone; 2], "{switches:?}");
            send(outboxes[0].as_ref().expect("it sends"), &early).expect("a slot is free");
            settle(nodes, &mut delivered);
            for delivered in delivered {
                assert_eq!(delivered, order, "{switches:?}");
            }
        });
    }
}
