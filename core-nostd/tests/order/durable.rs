//! Durable counts of a logged subgroup: the count that each member publishes, and the counts that
//! all members derive (DUR-1, DUR-2).

use crate::common::{OneMemory, settle, with_rows};
use proptest::prelude::*;
use tramontane_core::fabric::LossCause;
use tramontane_core::ids::{DurableCount, NodeId, Rank, SubgroupId, Time};
use tramontane_core::layout::{ControlCell, Delivery, Group, Layout, LayoutError, Subgroup};
use tramontane_core::memory::RowWriter;
use tramontane_core::multicast::Batch;
use tramontane_core::node::{DurableCounts, Node};

const LOGGED: SubgroupId = SubgroupId(1);
const NOT_LOGGED: SubgroupId = SubgroupId(0);

/// Opens a group with two subgroups, the second of which is logged.
fn with_logged(members: u16, body: impl FnOnce(&Layout<'_>, &mut [Node<'_>], &[RowWriter<'_>])) {
    with_senders(members, members, body);
}

/// Opens the same group, with fewer senders.
fn with_senders(
    members: u16,
    senders: u16,
    body: impl FnOnce(&Layout<'_>, &mut [Node<'_>], &[RowWriter<'_>]),
) {
    let ids: Vec<NodeId> = (0..members).map(|id| NodeId(u32::from(id))).collect();
    let ranks: Vec<Rank> = (0..members).map(Rank).collect();
    let delivery = Delivery::Ordered;
    let senders = &ranks[..usize::from(senders)];
    let one = Subgroup { members: &ranks, senders, window: 4, message_max: 16, delivery };
    let subgroups = [one; 2];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("good");
    let layout = layout.with_logged(&[LOGGED]).expect("it is ordered");
    with_rows(&layout, |nodes, _, rows| body(&layout, nodes, rows));
}

/// Computes the counts naively: the highest number that more than half of the members, or all, have
/// reached.
fn naive(counts: &[u64], own: usize) -> DurableCounts {
    let has = |count: u64| counts.iter().filter(|other| **other >= count).count();
    let most = counts.iter().copied().max().expect("a member");
    let majority = (0..=most).rev().find(|count| 2 * has(*count) > counts.len()).expect("zero");
    let everywhere = (0..=most).rev().find(|count| has(*count) == counts.len()).expect("zero");
    let [here, majority, everywhere] = [counts[own], majority, everywhere].map(DurableCount);
    DurableCounts { here, majority, everywhere }
}

proptest! {
    #[test]
    fn derived_durable_counts_never_exceed_true_counts(
        members in 1_u16..8,
        said in prop::collection::vec((0_usize..8, 0_u64..40, any::<bool>()), 1..40),
    ) {
        with_logged(members, |_, nodes, _| {
            let mut counts = vec![0_u64; nodes.len()];
            let mut before = vec![DurableCounts::default(); nodes.len()];
            let mut delivered = vec![Vec::new(); nodes.len()];
            for (member, count, settles) in said {
                let member = member % nodes.len();
                nodes[member].set_durable(LOGGED, DurableCount(count));
                // A count that is not larger than the last one changes nothing.
                counts[member] = counts[member].max(count);
                if settles {
                    settle(nodes, &mut delivered);
                }
                for (own, node) in nodes.iter().enumerate() {
                    let known = node.durable(LOGGED).expect("it is logged");
                    let holds = naive(&counts, own);
                    assert_eq!(known.here, holds.here);
                    assert!(known.majority <= holds.majority, "{known:?}, {holds:?}");
                    assert!(known.everywhere <= holds.everywhere, "{known:?}, {holds:?}");
                    assert!(known.majority >= before[own].majority, "it fell");
                    assert!(known.everywhere >= before[own].everywhere, "it fell");
                    assert!(!settles || known == holds, "{known:?} where {holds:?} holds");
                    before[own] = known;
                }
            }
        });
    }
}

#[test]
fn durable_count_update_costs_one_write_per_peer() {
    with_logged(3, |_, nodes, _| {
        let mut delivered = vec![Vec::new(); 3];
        settle(nodes, &mut delivered);
        nodes[1].set_durable(LOGGED, DurableCount(7));
        assert!(!nodes[1].is_settled(), "the others do not know it yet");
        assert_eq!(settle(nodes, &mut delivered), [0, 2, 0]);
        nodes[1].set_durable(LOGGED, DurableCount(7));
        nodes[1].set_durable(NOT_LOGGED, DurableCount(9));
        assert!(nodes[1].is_settled());
        assert_eq!(settle(nodes, &mut delivered), [0, 0, 0]);
        assert_eq!(nodes[0].durable(NOT_LOGGED), None);
    });
}

/// A view whose senders have all left still learns that messages of earlier views are durable.
#[test]
fn durable_counts_arrive_without_senders() {
    with_senders(3, 0, |_, nodes, _| {
        let mut delivered = vec![Vec::new(); 3];
        settle(nodes, &mut delivered);
        for count in [1, 2] {
            nodes.iter_mut().for_each(|node| node.set_durable(LOGGED, DurableCount(count)));
            settle(nodes, &mut delivered);
            let known = nodes[0].durable(LOGGED).expect("it is logged");
            assert_eq!((known.majority.0, known.everywhere.0), (count, count));
        }
    });
}

#[test]
fn shrinking_durable_count_is_misbehaviour() {
    with_logged(3, |layout, nodes, rows| {
        nodes[2].set_durable(LOGGED, DurableCount(9));
        nodes[1].set_durable(LOGGED, DurableCount(4));
        settle(nodes, &mut vec![Vec::new(); 3]);
        let known = nodes[1].durable(LOGGED).expect("it is logged");
        assert_eq!((known.majority.0, known.everywhere.0), (4, 0));
        let at = layout.control_offset(Rank(2), LOGGED).expect("a member");
        let cell = rows[2].cell(at + ControlCell::Durable.offset()).expect("a cell");
        cell.publish(8);
        let step = nodes[1].step(Time(0), &mut OneMemory, &mut |_: &mut Batch<'_>| {});
        let lost = step.expect("it steps").lost;
        assert_eq!(lost, Some((Rank(2), LossCause::Misbehaved)));
        assert_eq!(nodes[1].durable(LOGGED), Some(known), "what was durable there stays so");
        // Counts that a lost member publishes later are ignored.
        cell.publish(20);
        nodes[1].set_durable(LOGGED, DurableCount(12));
        let step = nodes[1].step(Time(0), &mut OneMemory, &mut |_: &mut Batch<'_>| {});
        assert_eq!(step.expect("it steps").lost, None);
        assert_eq!(nodes[1].durable(LOGGED).expect("it is logged").majority, DurableCount(9));
    });
}

#[test]
fn logging_a_subgroup_changes_only_the_digest() {
    const RANKS: [Rank; 2] = [Rank(0), Rank(1)];
    const NODES: [NodeId; 2] = [NodeId(0), NodeId(1)];
    let subgroup = |delivery| Subgroup {
        members: &RANKS,
        senders: &RANKS,
        window: 4,
        message_max: 16,
        delivery,
    };
    let subgroups =
        [subgroup(Delivery::Ordered), subgroup(Delivery::Ordered), subgroup(Delivery::Unordered)];
    let layout = Layout::new(Group { members: &NODES, subgroups: &subgroups }).expect("good");
    let mut digests = vec![layout.digest()];
    for logged in [&[SubgroupId(0)][..], &[SubgroupId(1)], &[SubgroupId(0), SubgroupId(1)]] {
        let with = layout.with_logged(logged).expect("they are ordered");
        assert_eq!(with.row_bytes(Rank(0)), layout.row_bytes(Rank(0)));
        assert!(logged.iter().all(|subgroup| with.is_logged(*subgroup)));
        assert!(!with.is_logged(SubgroupId(2)));
        assert!(!digests.contains(&with.digest()));
        digests.push(with.digest());
    }
    for wrong in [&[SubgroupId(2)][..], &[SubgroupId(3)], &[SubgroupId(0), SubgroupId(0)]] {
        assert_eq!(layout.with_logged(wrong).err(), Some(LayoutError::BadLoggedSubgroup));
    }
    assert_eq!(layout.with_logged(&[]).expect("none").digest(), layout.digest());
}
