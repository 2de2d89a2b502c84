//! Offsets of the columns of the view protocol.

use proptest::prelude::*;
use tramontane_core::ids::{NodeId, Rank, SubgroupId};
use tramontane_core::layout::{Group, JOINS_MAX, Layout, ViewColumn};

use super::{group, lent};

proptest! {
    /// The columns of the view protocol follow all other parts, and change none of them.
    #[test]
    fn view_columns_follow_all_other_row_parts((size, drawn) in group()) {
        let members: Vec<NodeId> = (0..u32::from(size)).map(NodeId).collect();
        let subgroups = lent(&drawn);
        let group = Group { members: &members, subgroups: &subgroups };
        let fixed = Layout::new(group).expect("a good group");
        let views = Layout::with_views(group).expect("a good group");
        prop_assert_eq!(fixed.view_block(), None);
        prop_assert_ne!(fixed.digest(), views.digest());
        let block = views.view_block().expect("it has views");
        // Each member can fail or leave, each join can be proposed and withdrawn, and one entry
        // seals.
        prop_assert_eq!(block.entries(), members.len() + JOINS_MAX + JOINS_MAX + 1);
        let ids = (0..subgroups.len()).map(|id| SubgroupId(id as u16));
        let mut columns = vec![
            ViewColumn::Heartbeat, ViewColumn::Leaving, ViewColumn::JoinRequest,
            ViewColumn::Stance, ViewColumn::Committed, ViewColumn::Installed,
        ];
        columns.extend((0..block.words()).map(|word| ViewColumn::Suspicions(word as u16)));
        columns.extend((0..block.entries()).map(|index| ViewColumn::Entry(index as u16)));
        columns.extend(ids.clone().flat_map(|id| [ViewColumn::Wedged(id), ViewColumn::Trim(id)]));
        for rank in (0..size).map(Rank) {
            prop_assert_eq!(views.row_bytes(rank), fixed.row_bytes(rank) + block.bytes());
            for id in ids.clone() {
                prop_assert_eq!(views.control_offset(rank, id), fixed.control_offset(rank, id));
                prop_assert_eq!(views.ring(rank, id), fixed.ring(rank, id));
            }
            let mut at: Vec<usize> =
                columns.iter().map(|column| views.view_offset(rank, *column).expect("a column")).collect();
            // One guard write covers the three guards.
            prop_assert_eq!([at[3] + 8, at[3] + 16], [at[4], at[5]]);
            at.sort_unstable();
            prop_assert_eq!(at[0], fixed.row_bytes(rank));
            prop_assert!(at.iter().all(|at| at.is_multiple_of(8)));
            prop_assert!(at.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(at[at.len() - 1] + 8 <= views.row_bytes(rank));
            prop_assert_eq!(fixed.view_offset(rank, ViewColumn::Stance), None);
            let behind = ViewColumn::Entry(block.entries() as u16);
            prop_assert_eq!(views.view_offset(rank, behind), None);
        }
    }
}
