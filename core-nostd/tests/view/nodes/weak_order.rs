//! The columns of a view on a machine where the writes of a device become visible out of order
//! (HAL-1).

use super::members::{NodeMember, open};
use crate::weak::network;
use tramontane_core::ids::{NodeId, Time};
use tramontane_core::multicast::Batch;
use tramontane_core::view::Status;

#[test]
fn view_columns_are_read_after_a_barrier() {
    let ids: Vec<NodeId> = (1..=4).map(NodeId).collect();
    for victim in 0..4_usize {
        let mut members = open(1, &ids, false, victim as u64);
        let copies = members[0].fabric.copies.clone().expect("copies");
        let mut ends = network(&copies);
        let mut now = 0;
        for turn in 0.. {
            now += 100;
            let mut is_over = true;
            for (rank, NodeMember { node, .. }) in members.iter_mut().enumerate() {
                if rank == victim && turn > 10 {
                    continue;
                }
                let mut nothing = |_: &mut Batch<'_>| {};
                let stepped = node.step(Time(now), &mut ends[rank], &mut nothing, |_| true);
                let (_, status) = stepped.expect("it steps");
                assert!(
                    !matches!(status, Status::Halted(_)),
                    "{rank} of which {victim} failed: {status:?}"
                );
                is_over &= status == Status::Installed;
            }
            if is_over {
                break;
            }
            assert!(turn < 5_000, "the view does not end");
        }
        for (rank, NodeMember { node, .. }) in members.iter_mut().enumerate() {
            let next = node.next_view().map(|next| next.members.to_vec());
            let survivors = || ids.iter().copied().filter(|id| *id != ids[victim]).collect();
            assert_eq!(next, (rank != victim).then(survivors));
        }
    }
}
